"""`typing.TypedDict` in annotations, put as models of the same JSON: pydantic takes it from Python 3.12 on only."""

import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field, create_model

_Known = dict[Any, type[BaseModel] | None]


def without_typed_dicts(annotation: Any, known: _Known | None = None) -> Any:
    """Return the annotation with a model in place of each TypedDict; one that holds itself is any object inside."""
    known = {} if known is None else known
    if typing.is_typeddict(annotation):
        return _model_of(annotation, known)
    origin, parts = get_origin(annotation), get_args(annotation)
    if not parts or origin is Literal:
        return annotation
    if origin is Annotated:
        return Annotated[(without_typed_dicts(parts[0], known), *parts[1:])]
    replaced = tuple(without_typed_dicts(part, known) for part in parts)
    if all(after is before for after, before in zip(replaced, parts, strict=True)):
        return annotation
    if origin in {Union, types.UnionType}:
        return Union[replaced]  # noqa: UP007  # a tuple of members has no other spelling
    return origin[replaced] if origin is not None else annotation


def _model_of(typed_dict: Any, known: _Known) -> Any:
    if typed_dict in known:
        return known[typed_dict] or dict[str, Any]
    known[typed_dict] = None
    fields: dict[str, Any] = {}
    for number, (key, hint) in enumerate(typing.get_type_hints(typed_dict, include_extras=True).items()):
        if get_origin(hint) in {typing.Required, typing.NotRequired}:
            (hint,) = get_args(hint)  # noqa: PLW2901
        is_required = key in typed_dict.__required_keys__
        place = Field(alias=key) if is_required else Field(alias=key, default_factory=dict)
        fields[f"p{number}"] = (without_typed_dicts(hint, known), place)
    model: type[BaseModel] = create_model(typed_dict.__name__, **fields)
    known[typed_dict] = model
    return model
