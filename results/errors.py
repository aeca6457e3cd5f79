"""What this floor cannot answer itself; a message names thing, cause and way out, never a credential."""


class ResultsError(Exception):
    """Anything the results floor raises."""


class StoreUnavailable(ResultsError):
    """The store did not answer, or said that it is in trouble; the same request may work later."""


class StoreRefused(ResultsError):
    """The store answered no (rights, space, a missing bucket); somebody has to change something first."""


class NotFound(ResultsError):
    """No object lies under this key."""


class AlreadyStored(ResultsError):
    """`put_new` found an object under its key."""


class InvalidKey(ResultsError, ValueError):
    """A key, a run id or a writer's name that could leave its place in the store."""


class RecordInvalid(ResultsError, ValueError):
    """A record that is not one line of JSON with the fields of a record."""


class SinkClosed(ResultsError):
    """A record came after the shard writer was closed, or the writer was closed before the record was stored."""


class ShardNotWritten(ResultsError):
    """A shard could not be stored within its tries; writing the same records again tries the same shard again."""


class CorruptShard(ResultsError):
    """A shard whose bytes are not what a shard writer made."""
