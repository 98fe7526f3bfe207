"""External programs: real processes, good and bad."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stoic.refusal import RefusalError
from stoic.tuning.failure import parse_rules
from stoic.tuning.mark import RUN, kill_marked
from stoic.tuning.program import KEPT_OUTPUT, Program, _Tail
from stoic.tuning.reading import Reading
from stoic.tuning.template import Template
from stoic.tuning.worker import Worker


def python(code: str, *, timeout: float | None = 300, value: str = "last-line") -> Program:
    template = Template((sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), "{x}"))
    return Program(template, Reading.parse(value), Path.cwd(), timeout)


def shell(script: str, *, timeout: float | None = 300, value: str = "last-line") -> Program:
    template = Template(("/bin/sh", "-c", script.replace("{", "{{").replace("}", "}}")))
    return Program(template, Reading.parse(value), Path.cwd(), timeout)


def gone(pid: int, within: float = 60.0) -> bool:
    """Whether a process ends (a corpse nobody has collected yet counts as ended)."""
    me = Worker.current()
    until = time.monotonic() + within
    while time.monotonic() < until:
        if Worker.of(pid, me).started == "":
            return True
        time.sleep(0.02)
    return False


def written(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def test_the_value_comes_back_with_parameters_in_the_arguments():
    result = python("import sys; print('hello'); print(float(sys.argv[1]) * 2)").run({"x": 1.5})
    assert result.value == 3.0
    assert result.failure is None
    assert 0 < result.seconds < 300


def test_where_a_program_cannot_be_stopped_it_is_not_begun(monkeypatch):
    monkeypatch.delattr("os.killpg")
    with pytest.raises(RefusalError, match=r"on Windows give stoic\.tune a function"):
        python("print(1)").check()


def test_no_shell_reads_the_arguments():
    program = python("import sys; print(len(sys.argv[1]))")
    assert program.run({"x": "$(echo 1); *"}).value == 12


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("echo 1; exit 3", "exit code 3"),
        ("echo 1; kill -SEGV $$", "killed by SIGSEGV"),
        ("echo nan", "the value is nan"),
        ("true", "no value: the program printed nothing to standard output"),
        ("echo 1 >&2", "no value: the program printed nothing to standard output"),
        ("echo 1; echo done", "no value: the last line is no number"),
        ("printf '\\377\\376\\000'", "no number"),
    ],
)
def test_a_failure_has_a_reason_and_no_value(script, failure):
    result = shell(script).run({})
    assert result.value is None
    assert failure in str(result.failure)


RULES = parse_rules(
    {"exit 3": "infeasible", "exit": "bad", "signal KILL": "transient", "nan": "bad"}
    | {"timeout": "bad"}
)


@pytest.mark.parametrize(
    ("script", "kind", "reason"),
    [
        ("exit 3", "infeasible", "exit code 3 (infeasible)"),
        ("exit 4", "bad", "exit code 4 (bad)"),
        ("kill -KILL $$", "transient", "killed by SIGKILL (transient)"),
        ("kill -SEGV $$", None, "killed by SIGSEGV"),
        ("echo nan", "bad", "the value is nan (bad)"),
        ("echo done", None, "no value: the last line is no number"),
        ("sleep 300", "bad", "timeout after 1 s (bad)"),
        # Its own word, whatever else is known.
        ("""echo '{"failed": "transient"}'; exit 3""", "transient", "exit code 3 (transient)"),
        ("""echo '{"failed": "infeasible"}'""", "infeasible", "said that it failed (infeasible)"),
        ("""echo '{"failed": "bad", "loss": 3}'; echo 1""", "bad", "said that it failed (bad)"),
        ("""echo '{"failed": "bad"}'; kill -SEGV $$""", "bad", "killed by SIGSEGV (bad)"),
        ("""echo '{"failed": "oom"}'; exit 3""", "infeasible", "exit code 3 (infeasible)"),
    ],
)
def test_a_failure_may_have_a_kind(script, kind, reason):
    timeout = 1 if "sleep" in script else 300
    result = replace(shell(script, timeout=timeout), failures=RULES).run({})
    assert result.value is None
    assert (result.kind, result.reason) == (kind, reason)


@pytest.mark.parametrize(
    "line",
    ['{"failed": null, "loss": 2}', '{"failed": "no", "loss": 2}', '{"loss": 2, "failed": []}'],
)
def test_only_a_kind_is_a_failure(line):
    assert shell(f"echo '{line}'", value="json:loss").run({}).value == 2
    earlier = f"""echo '{{"failed": "bad"}}'; echo '{line}'"""  # the last JSON line counts
    assert shell(earlier, value="json:loss").run({}).value == 2


def test_what_the_program_complained_about_is_kept():
    result = shell("echo first >&2; echo 'disk full' >&2; exit 1").run({})
    assert result.errors.splitlines()[-1] == "disk full"
    result = shell("echo 'disk full' >&2; echo done").run({})
    assert result.errors.splitlines()[-1] == "disk full"
    assert shell("echo done").run({}).errors == "'done'"  # or what it said instead of a number
    result = shell("""echo '{"loss": 3}'""").run({})
    assert result.reason == "no value: the last line is JSON, add --value json:KEY"
    assert result.errors == """'{"loss": 3}'"""


def test_a_program_that_cannot_start_is_a_failed_trial():
    template = Template(("{x}",))
    program = Program(template, Reading.parse("last-line"), Path.cwd())
    assert "cannot start" in str(program.run({"x": "no-such-program"}).failure)
    nul = Program(Template(("/bin/echo", "{x}")), Reading.parse("last-line"), Path.cwd())
    assert "cannot start" in str(nul.run({"x": "a\0b"}).failure)


def test_what_is_not_there_is_refused_before_anything_runs(tmp_path):
    for first in ("no-such-program", "./train", str(tmp_path)):
        program = Program(Template((first,)), Reading.parse("last-line"), tmp_path)
        if first != str(tmp_path):
            with pytest.raises(RefusalError, match="Cannot find the program"):
                program.check()
    away = Program(Template(("sh",)), Reading.parse("last-line"), tmp_path / "away")
    with pytest.raises(RefusalError, match="no directory"):
        away.check()
    Program(Template(("{python}",)), Reading.parse("last-line"), tmp_path).check()
    Program(Template(("sh",)), Reading.parse("last-line"), tmp_path).check()


def test_the_environment_and_the_directory_reach_the_program(tmp_path):
    template = Template(("/bin/sh", "-c", "pwd; echo $STOIC_TRIAL"))
    program = Program(template, Reading.parse("last-line"), tmp_path)
    assert program.run({}, environment={"STOIC_TRIAL": "17"}).value == 17
    where = Program(template, Reading.parse(rf"regex:({tmp_path})"), tmp_path)
    assert "no number" in str(where.run({}).failure)


def test_a_timeout_kills_the_program_and_its_children_and_their_children(tmp_path):
    pids = tmp_path / "pids"
    inner = f"echo $$ >> {pids}; sleep 300 & echo $! >> {pids}; wait"
    script = f"echo $$ >> {pids}; /bin/sh -c '{inner}' & sleep 300"
    begun = time.monotonic()
    result = shell(script, timeout=2).run({})
    assert result.failure == "timeout after 2 s"
    assert time.monotonic() - begun < 200
    left = [int(line) for line in pids.read_text().split()]
    assert len(left) == 3
    assert all(gone(pid) for pid in left)


def test_a_program_that_ignores_the_polite_signal_is_killed():
    begun = time.monotonic()
    result = shell("trap '' TERM; while true; do sleep 0.05; done", timeout=0.3).run({})
    assert result.failure == "timeout after 0.3 s"
    assert time.monotonic() - begun < 60  # it would go on for ever


def test_a_program_that_floods_until_its_timeout_is_stopped():
    assert shell("yes", timeout=0.5).run({}).failure == "timeout after 0.5 s"


def test_children_left_behind_by_a_finished_program_are_killed(tmp_path):
    pid = tmp_path / "pid"
    begun = time.monotonic()
    result = shell(f"sleep 300 & echo $! > {pid}; echo 4").run({})
    assert result.value == 4  # although the child still holds the pipe
    assert time.monotonic() - begun < 200
    assert gone(int(pid.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("ending", ["echo 4", "kill -9 $$", "sleep 300"])
def test_children_in_a_session_of_their_own_are_killed(tmp_path, ending):
    pid, kept = tmp_path / "pid", tmp_path / "kept"
    daemon = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    stays = (
        "import os, time; os.setsid();"
        f"open({str(kept)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    )
    script = (
        f'setsid {sys.executable} -c "{daemon}" > /dev/null 2>&1 &\n'
        f'env -u {RUN} {sys.executable} -c "{stays}" > /dev/null 2>&1 &\n'
        f"until [ -s {pid} ] && [ -s {kept} ]; do sleep 0.05; done; {ending}"
    )
    begun = {pid, kept}  # a time limit ends a run as being stopped does, above
    shell(script).run({}, stopped=lambda: ending == "sleep 300" and all(map(written, begun)))
    assert gone(int(pid.read_text()))
    stays = int(kept.read_text())  # what began without the mark is not ours to end
    assert not gone(stays, within=0.2)
    os.kill(stays, signal.SIGKILL)


def test_a_study_in_a_trial_of_another_leaves_the_other_alone(monkeypatch):
    monkeypatch.setenv(RUN, "outer")
    assert python(f"import os; print(len(os.environ['{RUN}'].split()))").run({"x": 0}).value == 2
    bystander = subprocess.Popen(["sleep", "300"])  # of the outer run
    try:
        assert shell("echo 1").run({}).value == 1
        assert bystander.poll() is None
        kill_marked(lambda mark: mark == "outer")
        assert bystander.wait(timeout=60) == -signal.SIGKILL
    finally:
        bystander.kill()


def test_floods_on_both_streams_are_read_and_the_last_line_counts():
    script = "yes | head -c 60000000; yes | head -c 20000000 >&2; echo; echo 0.25"
    assert shell(script).run({}).value == 0.25
    assert shell("head -c 3000000 /dev/urandom; echo; echo 2").run({}).value == 2


def test_a_line_without_its_beginning_is_never_taken_for_a_number():
    digits = "1" * (3 * KEPT_OUTPUT)
    assert shell(f"yes | tr -d '\\n' | tr y 1 | head -c {len(digits)}").run({}).value is None
    pattern = shell(
        f"yes | tr -d '\\n' | tr y 1 | head -c {len(digits)}", value=r"regex:(\d+)"
    ).run({})
    assert pattern.value is None


@pytest.mark.parametrize("value", ["last-line", "regex:loss=(.*)", "json:loss"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_flood_without_a_whole_line_is_not_taken_for_silence(value, end):
    flood = f"import sys; sys.stdout.write('0' * {3 * KEPT_OUTPUT} + {end!r})"
    result = python(flood, value=value).run({"x": 0})
    assert result.failure == (
        "no value: the last 256 KiB that the program printed have no whole line"
    )


def test_the_tail_is_bounded_and_is_the_tail():
    tail, told = _Tail(100), b""
    for i in range(1000):
        data = b"%d\n" % i
        tail.add(data)
        told += data
        assert len(tail.kept) <= 200 + len(data)
    assert told.decode().endswith(tail.text())
    assert len(tail.text()) == 100
    lines = tail.whole_lines().split()
    assert lines[-1] == "999"
    assert lines == [str(i) for i in range(1000 - len(lines), 1000)]


def test_closing_its_output_does_not_end_a_program():
    code = "import os, time; print(5, flush=True); os.close(1); os.close(2); time.sleep(0.4)"
    result = python(code).run({"x": 0})
    assert result.value == 5
    assert result.seconds >= 0.4


def test_stopping_is_noticed_while_the_program_runs():
    asked = threading.Event()
    threading.Timer(0.2, asked.set).start()
    pids: list[int] = []
    result = shell("sleep 300").run({}, stopped=asked.is_set, started=pids.append)
    assert result.failure == "interrupted"
    assert result.kind == "transient"
    assert result.seconds < 200
    assert gone(pids[0])


def test_the_program_is_killed_when_our_own_code_fails():
    pids: list[int] = []

    def started(pid: int) -> None:
        pids.append(pid)
        raise RuntimeError("the storage is gone")

    with pytest.raises(RuntimeError, match="storage is gone"):
        shell("sleep 300").run({}, started=started)
    assert gone(pids[0])


def test_the_program_has_a_session_of_its_own():
    code = "import os; print(int(os.getsid(0) == os.getpid()))"
    assert python(code).run({"x": 0}).value == 1
