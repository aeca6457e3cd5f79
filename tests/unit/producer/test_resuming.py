"""The command that resumes is the same command, but for jobs that came through a pipe."""

from producer.resuming import resume_command


def test_the_same_command_resumes() -> None:
    arguments = ["run", "my recipe.yaml", "--jobs", "jobs.jsonl", "--workers", "2"]
    assert resume_command(arguments, "r1") == "parley run 'my recipe.yaml' --jobs jobs.jsonl --workers 2"


def test_jobs_from_a_pipe_are_named_by_the_run_that_stored_them() -> None:
    for jobs in (["--jobs", "-"], ["--jobs=-"]):
        assert (
            resume_command(["run", "r.yaml", *jobs, "--json"], "r1") == "parley run r.yaml --json --run-id r1 --resume"
        )
    assert (
        resume_command(["run", "r.yaml", "--run-id", "r1", "--jobs", "-"], "r1")
        == "parley run r.yaml --run-id r1 --resume"
    )
