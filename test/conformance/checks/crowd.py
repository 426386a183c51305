"""One very large directory. Apart from the others, since making it costs as much as all of them."""
import os

from directories import files
from table import check, equal, make, true

MANY = 100_000


def old_crowd():
    # Hard links of a few files: as many entries, and made in a tenth of the time.
    os.mkdir("crowd")
    for number in range(MANY):
        if number % 25_000 == 0:
            source = f"crowd/n{number}"
            make(source)
        else:
            os.link(source, f"crowd/n{number}")


@check(before=old_crowd)
def hundred_thousand_entries_are_listed_once():
    """A directory of 100,000 entries is listed whole, each once, also after some went and some came."""
    names = os.listdir("crowd")
    equal(len(names), MANY, "entries")
    equal(len(set(names)), MANY, "different entries")
    for number in range(0, MANY, 1000):
        os.unlink(f"crowd/n{number}")
    files("crowd", [f"m{number}" for number in range(100)])
    names = os.listdir("crowd")
    wanted = {f"n{n}" for n in range(MANY) if n % 1000} | {f"m{n}" for n in range(100)}
    equal(len(names), len(wanted), "entries after the change")
    true(set(names) == wanted, "other names than made")
