"""A wrong value of an option is a command that was not understood: status 2, wherever it is found."""

import pytest

UNIFORM = ("run", "randread", "--on", "null:", "--size", "1m", "--requests", "5")
TRACE = ("examples/loop0.parquet", "--on", "null:")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*UNIFORM, "--bs", "x"), "--bs x: 'x' is not a size"),
        ((*UNIFORM, "--bs", "4k:60,64k"), "--bs 4k:60,64k: 64k needs its share"),
        ((*UNIFORM, "--skew", "zipf"), "--skew zipf: write zipf:EXPONENT"),
        ((*UNIFORM, "--skew", "pareto:7"), "--skew: "),
        ((*UNIFORM, "--arrival", "often"), "--arrival often: must be one of"),
        ((*UNIFORM, "--arrival", "poisson"), "give --rate, too"),
        ((*UNIFORM, "--ioprio", "high"), "--ioprio high: write idle"),
        ((*UNIFORM, "--backend", "sync"), "--backend sync: the target null:"),
        ((*UNIFORM, "--content", "nosuch"), "--content nosuch: use unique"),
        ((*UNIFORM, "-D", "reads=x"), "-D reads=x: 'x' is no share"),
        ((*UNIFORM, "-D", "writes=1"), "-D writes: "),
        (("replay", *TRACE, "--pace", "fast"), "pace 'fast': write recorded"),
        (("replay", *TRACE, "--map", "9=null:"), "--map 9=...: there is no such object"),
        (("run", "iozone", "--on", "null:", "-D", "passes=1"), "-D passes: iozone has no such variable"),
        (("run", "bonnie", "--on", "null:", "--sweep"), "--sweep: bonnie has none"),
        (("run", "varmail", "--on", "null:", "-D", "entries=1"), "-D entries: "),
        (("evaluate", *TRACE, "--repeat", "1"), "--repeat 1: at least 2"),
        (("evaluate", *TRACE, "--pace", "fast"), "pace 'fast'"),
        (("replay", *TRACE, "--format", "spd"), "no format is called spd; known: "),
        (("trace", "convert", TRACE[0], "-o", "x", "--to", "qcow"), "no format called qcow can be written"),
        (("trace", "convert", TRACE[0], "-o", "x", "--columns", "when=1"), "the column map has 'when=1'"),
        (("dataset", "scan", "tests", "-o", "x", "--chunking", "rabin"), "'rabin' is not a chunking"),
        (("dataset", "populate", "-o", "x", "--sizes", "odd"), "'odd' is no law of file sizes"),
        (("dataset", "populate", "-o", "x", "--depths", "odd"), "'odd' are no depths"),
        (("run", "iozone", "--on", "null:", "--bs", "4k:60"), "--bs 4k:60: '4k:60' is not a size"),
    ],
)
def test_a_wrong_value_ends_with_status_2(words, says, loadstone, root):
    given = [root / word if word.startswith("examples/") else word for word in words]
    assert says in loadstone(*given, status=2).stderr
