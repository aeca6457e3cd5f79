"""What the command line answers for itself: each error says what, why and the way out."""


class ProducerError(Exception):
    """Something the person who typed the command can mend."""


class UsageInvalid(ProducerError):
    """The command line asks for something that makes no sense; exit code 2."""


class InputInvalid(ProducerError):
    """A job line, or the file it stands in, cannot be used; exit code 3."""


class NoSuchJob(UsageInvalid):
    """A run has no job of this index or id; exit code 2."""


class NotPaused(InputInvalid):
    """A job does not wait for answers from outside: it is finished, or it goes on (rule S17); exit code 3."""


class CallUnknown(InputInvalid):
    """A job never asked for an answer to this call; exit code 3."""


class ResultInvalid(InputInvalid):
    """A result from outside is not what its tool gives; exit code 3."""


class RunLocked(ProducerError):
    """Another process on this machine is running the same run; exit code 3."""


class DependencyUnreachable(ProducerError):
    """A server this command needs (model, Redis) does not answer; exit code 5."""


class WorkersKeepDying(ProducerError):
    """Worker processes die as soon as they are started; exit code 1."""


class Interrupted(ProducerError):
    """The person pressed Ctrl-C; the message holds the command that resumes; exit code 130."""
