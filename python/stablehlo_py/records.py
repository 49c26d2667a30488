"""Records: classes of named fields like frozen dataclasses, made in a twentieth of the time.

    @record
    class Step:
        name: str
        options: str = ""
        seen: set[str] = field(default_factory=set)

A dataclass writes six methods as text and compiles each: 0.4 ms a class, which a hundred and fifty classes made a fifth
of the time to the first program. Here one `__init__` is compiled for each number of fields, and a class gets it with
its names put in; the other methods are the same functions for all. What looks at dataclasses from outside
(`dataclasses.fields`, `replace`, `asdict`, `match`) finds what it expects.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Hashable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """What tells type checkers of decorators that make dataclasses; Python 3.10 has none."""
        return lambda decorator: decorator


T = TypeVar("T")
_FIELDS, _VALUES = "__record_fields__", "__record_values__"
_MISSING: Any = object()  # Any: stands for a value of any type


class Field:
    """What a record knows of one field; default_factory makes the value where none is given."""

    __slots__ = ("compare", "default", "default_factory", "name", "type")

    def __init__(self, default: Any, default_factory: Any, compare: bool, name: str = "", type: str = "") -> None:
        self.default, self.default_factory, self.compare, self.name, self.type = (
            default,
            default_factory,
            compare,
            name,
            type,
        )

    @property
    def required(self) -> bool:
        return self.default is _MISSING and self.default_factory is _MISSING


# Any: the value's own type is the annotation's
def field(*, default: Any = _MISSING, default_factory: Callable[[], Any] = _MISSING, compare: bool = True) -> Any:
    """A default that is made for each record anew, or a field that equality does not look at."""
    return Field(default, default_factory, compare)


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, frozen: bool = True, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, frozen: bool = True, eq: bool = True) -> Any:
    """A class whose annotations are its fields, in order after those of its bases.

    frozen: fields cannot be set. eq: records are equal where they are of one class and all fields are; those that are
    frozen too have a hash. Methods that the class writes itself stay. `__post_init__` is called at the end of `__init__`.
    """
    if cls is None:
        return functools.partial(_made, frozen=frozen, eq=eq)
    return _made(cls, frozen=frozen, eq=eq)


def fields(cls: type) -> tuple[Field, ...]:
    """The fields of a record's class."""
    return tuple(getattr(cls, _FIELDS).values())


def astuple(one: object) -> tuple[Any, ...]:  # Any: each field has its own type
    """The values of a record's fields, as they are."""
    return tuple(getattr(one, name) for name in getattr(one, _FIELDS))


def replace(old: T, **changes: Any) -> T:  # Any: each field has its own type
    """A copy of a record with some fields changed."""
    for name in getattr(old, _FIELDS):
        if name not in changes:
            changes[name] = getattr(old, name)
    return type(old)(**changes)


def _made(cls: type, *, frozen: bool, eq: bool) -> type:
    found = _fields_of(cls)
    own = vars(cls)
    methods: dict[str, Any] = {"__init__": _LaterInit(cls, found), "__repr__": _repr, "__replace__": replace}
    if eq:
        methods["__eq__"] = _eq
    if eq and own.get("__hash__") is None:  # Python itself takes the hash from a class with an `__eq__`
        methods["__hash__"] = _hash if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    for name, method in methods.items():
        # What a base has is not set again: a decorator of dataclasses that comes later may put its own there.
        if own.get(name) is None and getattr(cls, name, None) is not method:
            setattr(cls, name, method)
    setattr(cls, _FIELDS, found)
    setattr(cls, _VALUES, _values([name for name, one in found.items() if one.compare]))
    cls.__match_args__ = tuple(found)  # type: ignore[attr-defined]
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _AsDataclass(name, frozen))
    return cls


def _fields_of(cls: type) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= vars(base).get(_FIELDS, {})
    optional = [name for name, one in found.items() if not one.required]
    for name, kind in cls.__annotations__.items():  # its own: those of bases are not among them
        if (kind if isinstance(kind, str) else repr(kind)).removeprefix("typing.").startswith("ClassVar"):
            continue
        one = found[name] = _field(cls, name, kind)
        if one.required and optional and name not in optional:
            raise TypeError(
                f"field {name!r} of {cls.__qualname__} has no default, after {optional[-1]!r} which has one"
            )
        if not one.required:
            optional.append(name)
    return found


def _field(cls: type, name: str, kind: Any) -> Field:  # Any: an annotation, mostly text
    """The field of an annotation, with its default from the class."""
    value = vars(cls).get(name, _MISSING)
    if isinstance(value, Field):
        one = Field(value.default, value.default_factory, value.compare)
        if value.default is _MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value.default)
    elif (known := sys.modules.get("dataclasses")) is not None and isinstance(value, known.Field):
        # for a decorator of dataclasses that comes after this
        given = (_MISSING if v is known.MISSING else v for v in (value.default, value.default_factory))
        one = Field(*given, compare=bool(value.compare))
    else:
        one = Field(value, _MISSING, compare=True)
    if one.default is not _MISSING and not isinstance(one.default, Hashable):
        raise ValueError(f"the default of {cls.__qualname__}.{name} would be shared: write field(default_factory=...)")
    one.name, one.type = name, kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    return one


class _Factory:
    """The default of a field whose value is made when it is wanted."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


_FEW = 10  # records of a class: what a compiled `__init__` saves with more is worth its compilation


class _LaterInit:
    """An `__init__` that is compiled when it is worth it, and takes this place: most classes make few records or none."""

    def __init__(self, cls: Any, found: dict[str, Field]) -> None:  # Any: attributes are set on it
        self._cls, self._found, self._uses = cls, found, 0

    def __get__(self, instance: object, owner: type) -> Any:  # Any: the function, bound or not
        self._uses += 1
        return self._compiled(instance, owner) if instance is None or self._uses > _FEW else self._of(instance)

    def _of(self, instance: Any) -> Callable[..., None]:  # Any: a record
        """The `__init__` of one record."""

        def init(*values: Any, **named: Any) -> None:  # Any: of any fields
            given = {**dict(zip(self._found, values, strict=False)), **named}
            missing = [name for name in self._found if name not in given]
            if (
                len(given) != len(values) + len(named)
                or len(given) + len(missing) != len(self._found)
                or any(self._found[name].required for name in missing)
            ):
                self._compiled(instance, type(instance))(*values, **named)  # says what is wrong
                return
            for name, one in self._found.items():
                if name in given:
                    value = given[name]
                else:
                    value = one.default if one.default_factory is _MISSING else one.default_factory()
                object.__setattr__(instance, name, value)
            if hasattr(instance, "__post_init__"):
                instance.__post_init__()

        return init

    def _compiled(self, instance: object, owner: type) -> Any:  # Any: the function, bound or not
        made = _init(self._cls, self._found)
        if vars(self._cls).get("__init__") is self:
            self._cls.__init__ = made
        return made.__get__(instance, owner)


def _init(cls: type, found: dict[str, Field]) -> FunctionType:
    """`__init__` with the fields as its parameters."""
    factories = {name: one.default_factory for name, one in found.items() if one.default_factory is not _MISSING}
    known: dict[str, Any] = {"assign": object.__setattr__}  # Any: functions
    if factories or hasattr(cls, "__post_init__"):
        known["finish"] = _finish(factories, hasattr(cls, "__post_init__"))
    template = _template(len(found), "finish" in known)
    names = dict(zip(_places(len(found)), found, strict=True))
    code = template.replace(
        co_varnames=tuple(names.get(name, name) for name in template.co_varnames),
        co_consts=tuple(names.get(constant, constant) for constant in template.co_consts),
    )
    defaults = (one.default if name not in factories else _FACTORY for name, one in found.items() if not one.required)
    function = FunctionType(code, known, "__init__", tuple(defaults))
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    return function


def _places(count: int) -> list[str]:
    """What stands for the names of fields in a template."""
    return [f"field_{n}" for n in range(count)]


@functools.cache
def _template(count: int, has_finish: bool) -> CodeType:
    """The code of an `__init__` with so many fields."""
    places = _places(count)
    lines = [f"def __init__({', '.join(['self', *places])}):", *(f" assign(self, '{p}', {p})" for p in places)]
    lines.append(" finish(self)" if has_finish else " pass")
    held: dict[str, Any] = {}  # Any: the function
    exec("\n".join(lines), held)
    return held["__init__"].__code__


def _finish(factories: dict[str, Callable[[], Any]], has_post: bool) -> Callable[[Any], None]:  # Any: any record
    """What is left to do when all arguments are assigned."""

    def finish(self: Any) -> None:  # Any: any record
        for name, make in factories.items():
            if getattr(self, name) is _FACTORY:
                object.__setattr__(self, name, make())
        if has_post:
            self.__post_init__()

    return finish


def _values(names: list[str]) -> Callable[[Any], Any]:  # Any: the values of any record
    """What gives the values of some fields of a record as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return staticmethod(lambda self: tuple(getattr(self, name) for name in names))


def _eq(self: Any, other: object) -> bool:  # Any: any record
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = self.__record_values__
    return values(self) == values(other)


def _hash(self: Any) -> int:  # Any: any record
    return hash(self.__record_values__(self))


def _repr(self: Any) -> str:  # Any: any record
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in getattr(self, _FIELDS))
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    from dataclasses import FrozenInstanceError  # of 20 ms, and only for this

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _AsDataclass:
    """An attribute that marks dataclasses, made by `dataclasses` itself when it is asked for."""

    def __init__(self, name: str, frozen: bool) -> None:
        self._name, self._frozen = name, frozen

    def __get__(self, instance: object, owner: type) -> Any:  # Any: whatever dataclasses keeps there
        return getattr(_dataclass_like(owner, self._frozen), self._name)


@functools.cache
def _dataclass_like(cls: type, frozen: bool) -> type:
    """A dataclass with the fields of a record."""
    import dataclasses

    members: dict[str, Any] = {"__annotations__": {one.name: one.type for one in fields(cls)}}  # Any: as in a class
    for one in fields(cls):
        given = {key: getattr(one, key) for key in ("default", "default_factory") if getattr(one, key) is not _MISSING}
        members[one.name] = dataclasses.field(**given, compare=one.compare)
    return dataclasses.dataclass(frozen=frozen)(type(cls.__name__, (), members))
