"""O_APPEND: always at the end, by however many."""
import os

from table import Gate, Process, check, elsewhere, equal, make, opened, read


def old_log():
    make("old", b"first line\n")


@check(before=old_log)
def appends_of_many_processes_are_all_there():
    """Lines appended by six processes are all there, none torn, each writer's in order."""
    make("new")
    for name in ("old", "new"):
        go = Gate()

        def run(who):
            with opened(name, os.O_WRONLY | os.O_APPEND) as fd:
                go.wait()
                for number in range(120):
                    os.write(fd, b"%d %d %s\n" % (who, number, b"x" * (who * 97 + number)))

        processes = [Process(run, who) for who in range(6)]
        go.open(6)
        for process in processes:
            process.result()
        lines = read(name).split(b"\n")[:-1]
        if name == "old":
            equal(lines.pop(0), b"first line", "the line that was there")
        equal(len(lines), 720, f"lines in {name}")
        for who in range(6):
            own = [line for line in lines if line.startswith(b"%d " % who)]
            wanted = [b"%d %d %s" % (who, number, b"x" * (who * 97 + number)) for number in range(120)]
            equal(own == wanted, True, f"lines of {who} in {name} are whole and in order")


@check()
def appending_ignores_the_offset():
    """An appending descriptor writes at the end wherever it stands; pwrite on Linux too."""
    make("f", b"0123")
    with opened("f", os.O_RDWR | os.O_APPEND) as fd:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"4")
        equal(os.lseek(fd, 0, os.SEEK_CUR), 5, "offset after a write")
        os.lseek(fd, 1, os.SEEK_SET)
        equal(os.read(fd, 2), b"12", "read")
        os.pwrite(fd, b"5", 0)
        os.writev(fd, [b"6", b"7"])
    equal(read("f"), b"01234567", "content")


@check(before=old_log)
def appending_follows_others():
    """An appending descriptor finds the end that others made: by writes, truncation, and a map."""
    with opened("old", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b"a")

        def other():
            with opened("old", os.O_WRONLY) as own:
                os.pwrite(own, b"bb", 12)

        elsewhere(other)
        os.write(fd, b"c")
        equal(read("old"), b"first line\nabbc", "after another wrote")
        elsewhere(lambda: os.truncate("old", 5))
        os.write(fd, b"d")
        equal(read("old"), b"firstd", "after another cut it")
        elsewhere(lambda: os.truncate("old", 8))
        os.write(fd, b"e")
        equal(read("old"), b"firstd\0\0e", "after another grew it")


@check(before=old_log)
def appending_descriptors_of_before_and_after():
    """Descriptors that append, opened for the first time before and after a change, share one end."""
    with opened("old", os.O_RDWR | os.O_APPEND) as early:
        os.chmod("old", 0o600)
        with opened("old", os.O_WRONLY | os.O_APPEND) as late:
            for number in range(10):
                os.write(early if number % 2 else late, b"%d" % number)
        equal(os.pread(early, 99, 0), b"first line\n0123456789", "content")


@check(before=old_log)
def appending_with_truncation():
    """O_APPEND|O_TRUNC starts anew; log rotation by copy and truncate loses no later line."""
    with opened("old", os.O_WRONLY | os.O_APPEND) as logger:
        os.write(logger, b"second\n")
        make("old.1", read("old"))
        os.truncate("old", 0)
        os.write(logger, b"third\n")
        equal((read("old"), read("old.1")), (b"third\n", b"first line\nsecond\n"), "after rotation")
        with opened("old", os.O_WRONLY | os.O_APPEND | os.O_TRUNC) as fd:
            os.write(fd, b"fourth\n")
        os.write(logger, b"fifth\n")
    equal(read("old"), b"fourth\nfifth\n", "content")


@check()
def appending_large_pieces():
    """Pieces of a megabyte appended by three processes are each whole."""
    make("f")

    def run(who):
        with opened("f", os.O_WRONLY | os.O_APPEND) as fd:
            for _ in range(3):
                equal(os.write(fd, bytes([65 + who]) * 2**20), 2**20, "bytes written")

    for process in [Process(run, who) for who in range(3)]:
        process.result()
    content = read("f")
    equal(len(content), 9 * 2**20, "size")
    for index in range(9):
        piece = content[index * 2**20 : (index + 1) * 2**20]
        equal(piece == piece[:1] * 2**20, True, f"piece {index} is one writer's")
