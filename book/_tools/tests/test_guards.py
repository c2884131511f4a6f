"""Which guards and defaults the library has, and which of them no test reaches."""

import guards

MODULE = '''\
"""A module."""

LIMIT = 3
if LIMIT > 3:
    raise ValueError("never")


def f(x, y=1, *, z=2, w):
    """ä"""
    if x: raise ValueError("x")
    try:
        pass
    except OSError:
        raise
    def inner(k=1):
        raise KeyError
    return inner


def _private(x=1):
    raise TypeError


class Thing:
    def __init__(self, size=1):
        pass

    def forward(self, x, mask=None):
        if x:
            raise ValueError from None

    def _hidden(self, x=1):
        pass
'''


def test_guards_are_named_by_their_function_and_number():
    found = {(guard.name, guard.line, guard.bare) for guard in guards.guards(MODULE, "m.py")}
    assert found == {
        ("m.py  raise 1", 5, False),
        ("m.py f raise 1", 10, False),
        ("m.py f raise 2", 14, True),
        ("m.py f.inner raise 1", 16, False),
        ("m.py _private raise 1", 21, False),
        ("m.py Thing.forward raise 1", 30, False),
    }
    moved = guards.guards("# one\n" + MODULE, "m.py")
    assert {(guard.name, guard.line - 1, guard.bare) for guard in moved} == found


def test_defaults_are_those_of_what_can_be_called_by_its_name():
    assert [name for name, _ in guards.defaults(MODULE, "m.py")] == [
        "m.py f(y)",
        "m.py f(z)",
        "m.py Thing.__init__(size)",
        "m.py Thing.forward(mask)",
    ]


def test_what_no_test_reaches_is_named_with_its_line(tmp_path):
    (tmp_path / "lib/smalltorch/part").mkdir(parents=True)
    (tmp_path / "lib/smalltorch/part/m.py").write_text(MODULE, encoding="utf-8")
    every = [guard.name for guard in guards.guards(MODULE, "lib/smalltorch/part/m.py")]
    every += [name for name, _ in guards.defaults(MODULE, "lib/smalltorch/part/m.py")]
    assert guards.unreached(every, tmp_path) == []
    assert guards.unreached(every[1:-1], tmp_path) == [
        'lib/smalltorch/part/m.py:5: no test reaches raise ValueError("never")',
        "lib/smalltorch/part/m.py:28: no test leaves the argument to its default: Thing.forward(mask)",
    ]
    assert len(guards.unreached((), tmp_path)) == len(every) == 10
