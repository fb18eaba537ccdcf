"""Tests that models and configs of strangers run no code, and that keys do not leak."""

import ast
import copy
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import HERE, ROOT, leporello, read_lines, write_files
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense as DenseLayer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tiny_models import save

from leporello.config import Config, load_config
from leporello.core.errors import ConfigError, UserError
from leporello.core.records import Read
from leporello.core.secrets import Key, key, redact
from leporello.jobs.directory import RunDirectory, safe_name
from leporello.readers import CausalLM, Seq2Seq
from leporello.readers.backends.pretrained import load_model
from leporello.retrievers.embedders import load_encoder
from leporello.text.tokens import HuggingFace

STAGES = ("chunkers", "retrievers", "readers", "combiners")
SOURCES = sorted(
    path
    for folder in ("leporello", *STAGES, "recipes", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)

# Source code

_PICKLES = {"_pickle", "cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
_CALLS = {
    "eval", "exec", "os.system", "pickle.load", "pickle.loads", "torch.hub.load", "torch.load",
}  # fmt: skip
_ENDS = ("extractall", "load_module", "Unpickler", "unpack_archive")
# Configs contain no code, and the base model of an adapter is loaded before.
_PLAIN = ("GenerationConfig", "config_class", "PeftModel")
_SAFE = {"allow_pickle": "False", "trust_remote_code": "False", "shell": "False"}
# Unpickles only messages between processes of one run, and no files.
_EXEMPT = {
    "leporello/executors/channel.py": ["pickle", "pickle.loads"],
    # Loads checkpoints of the training itself with `weights_only`, which restricts the types.
    "recipes/answers/train.py": ["torch.load", "torch.load"],
}


def dangers(source: str) -> Iterator[str]:
    """Yields the imports and calls of a source that load pickles, or run text or a model's code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in _PICKLES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _PICKLES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            yield from dangers_of_call(node)


def dangers_of_call(node: ast.Call) -> Iterator[str]:
    name, arguments = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
    if name in _CALLS or name.endswith(_ENDS):
        yield name
    *_, loader, method = ["", *name.split(".")]
    if method == "from_pretrained" and loader not in _PLAIN:
        arguments.setdefault("trust_remote_code", "missing, so that the library asks the user")
    yield from (
        f"{name}: {k}={arguments[k or '']}"
        for k in arguments
        if arguments[k] != _SAFE.get(str(k), arguments[k])
    )


def test_no_source_loads_pickles_or_runs_a_models_code() -> None:
    scans = {p.relative_to(ROOT).as_posix(): [*dangers(p.read_text("utf-8"))] for p in SOURCES}
    assert {path: scan for path, scan in scans.items() if scan} == _EXEMPT


READ = Read(("A cat.",), "Who?")


def change_json(path: Path, **changes: Any) -> None:
    """Changes fields of a JSON file, which is created if it is missing."""
    fields = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(fields | changes), encoding="utf-8")


def booby_trapped(folder: Path, *, is_standard: bool) -> Path:
    """Adds Python code to a model; returns the file that the code creates when it runs."""
    marker = folder / "marker"
    (folder / "evil.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
        "class Config: pass\nclass Model: pass\nclass Tokens: pass\n",
        encoding="utf-8",
    )
    models = ("AutoModel", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM")
    autos = {"AutoConfig": "evil.Config", **dict.fromkeys(models, "evil.Model")}
    kind = {} if is_standard else {"model_type": "evil", "architectures": ["Evil"]}
    change_json(folder / "config.json", auto_map=autos, **kind)
    tokens = {"auto_map": {"AutoTokenizer": ["evil.Tokens", "evil.Tokens"]}}
    change_json(folder / "tokenizer_config.json", **tokens, tokenizer_class="Tokens")
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text((folder / "evil.py").read_text())
    return marker


class Bomb:
    """Object whose unpickling creates its file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.marker,)


def pickled(folder: Path) -> Path:
    """Replaces weights by a pickle; returns the file that the pickle creates when it is loaded."""
    (folder / "model.safetensors").unlink()
    marker = folder / "marker"
    torch.save({"weights": Bomb(marker)}, folder / "pytorch_model.bin")
    return marker


OWN_CODE, PICKLE = "needs its own Python code, which is never run", "as a pickle only"


@pytest.mark.parametrize("name", ["t5", "gpt2"])
@pytest.mark.parametrize("content", [OWN_CODE, PICKLE, "standard"])
def test_code_and_pickles_of_a_model_are_not_run(name: str, content: str, tmp_path: Path) -> None:
    save(name, tmp_path)
    is_standard = content == "standard"
    if content == PICKLE:
        marker = pickled(tmp_path)
    else:
        marker = booby_trapped(tmp_path, is_standard=is_standard)
    reader = (Seq2Seq if name == "t5" else CausalLM)(str(tmp_path), max_input_tokens=99)
    if is_standard:
        change_json(tmp_path / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
        assert reader.read([READ])
    else:
        with pytest.raises(UserError, match=content):
            reader.read([READ])
    if content == OWN_CODE:
        with pytest.raises(UserError, match=content):
            reader.count(["a"])
        assert len(HuggingFace(str(tmp_path)).offsets("A cat."))  # needs data only
    assert not marker.exists()


def test_the_command_that_the_message_gives_converts_a_pickle(tmp_path: Path) -> None:
    old = tmp_path / "old"
    save("t5", old)
    expected = Seq2Seq(str(old), max_input_tokens=99, device="cpu").read([READ])
    weights = Seq2Seq(str(old))._network.state_dict()
    torch.save(weights, old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    load_model.cache_clear()
    with pytest.raises(UserError) as refused:
        Seq2Seq(str(old), max_input_tokens=99).read([READ])
    line = str(refused.value).partition('python -c "')[2].rstrip('"')
    code = f"import os; os.chdir({str(tmp_path)!r}); {line}"
    exec(code, {})  # noqa: S102 -- the line under test
    new = Seq2Seq(str(tmp_path / "converted"), max_input_tokens=99, device="cpu")
    assert new.read([READ]) == expected


@pytest.fixture
def embedder(tmp_path: Path) -> Path:
    """Tiny sentence-transformers model whose last layer has weights."""
    save("llama", tmp_path / "base")
    words = Transformer(str(tmp_path / "base"))
    layer = DenseLayer(words.get_embedding_dimension(), 8)
    model = SentenceTransformer(modules=[words, Pooling(words.get_embedding_dimension()), layer])
    model.save_pretrained(str(tmp_path / "model"))
    return tmp_path / "model"


def change_layer(folder: Path, **changes: str) -> None:
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[2] |= changes
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda _: None, ""),
        (pickled, PICKLE),
        (lambda folder: pickled(folder / "2_Dense"), PICKLE),
        (partial(change_layer, type="evil.Model"), OWN_CODE),
        (partial(change_layer, path="../base"), "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").write_text("{"), "cannot be loaded"),
    ],
)
def test_code_and_pickles_of_an_embedder_are_not_run(
    embedder: Path, damage: Callable[[Path], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (embedder / "evil.py").write_text("open('marker', 'w')\nclass Model: pass\n")
    monkeypatch.syspath_prepend(str(embedder))
    monkeypatch.chdir(embedder)
    damage(embedder)
    if message:
        for model_type in ("SentenceTransformer", "CrossEncoder"):
            change_json(embedder / "config_sentence_transformers.json", model_type=model_type)
            with pytest.raises(UserError, match=message):
                load_encoder(model_type, str(embedder))
    else:
        assert load_encoder("SentenceTransformer", str(embedder))
    assert not (embedder / "marker").exists()
    assert "evil" not in sys.modules


def test_embedders_have_no_pickles_or_code(embedder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: list[Any] = []

    def download(model: str, ignore_patterns: list[str]) -> str:
        arguments.extend([model, ignore_patterns])
        return str(embedder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert load_encoder("SentenceTransformer", "somebody/some-model").max_seq_length
    assert arguments[0] == "somebody/some-model"
    assert {"*.bin", "*.pkl", "*.pt", "*.py"} <= set(arguments[1])


def test_no_service_converts_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service would receive the user's hub token."""
    monkeypatch.delenv("DISABLE_SAFETENSORS_CONVERSION", raising=False)
    save("t5", tmp_path)
    Seq2Seq(str(tmp_path), device="cpu").read([READ])
    assert os.environ["DISABLE_SAFETENSORS_CONVERSION"] == "1"


SECRET = "sk-7f/3+a\"b'ä"  # noqa: S105 -- not a real key; JSON, Python and URLs escape some of it

ORACLE = """
from dataclasses import dataclass, field
from typing import Any, Literal
from leporello import Output
from leporello.core.protocols import Reader, Secret

@dataclass(frozen=True)
class Oracle:
    api_key: Secret
    backup: Secret | None = None
    headers: dict[str, Secret] = field(default_factory=dict)
    organisation: str = ""
    mask_token: str = "<mask>"
    max_tokens: int = 5
    secret: Literal["kept", "told"] = "kept"

    def __post_init__(self):
        if not self.api_key.startswith(("sk-", "$")):
            raise ValueError(f"{self.api_key} is no key")

    def read(self, inputs):
        if any("fail" in read.question for read in inputs):
            raise PermissionError(f"401 for {self!r} with key {self.api_key}, {[self.api_key]}")
        return [Output(f"{len(self.api_key)} {read.question}") for read in inputs]

    def count(self, texts):
        return [len(text) for text in texts]

@dataclass(frozen=True)
class Seeker:
    api_key: Secret

    def retrieve(self, questions, chunks):
        if "is it lost?" in questions:
            raise PermissionError(f"401 for {self!r} with key {self.api_key}")
        return [[] for _ in questions]

@dataclass(frozen=True)
class Default(Oracle):
    api_key: Secret = "$ORACLE_KEY"

@dataclass(frozen=True)
class Hidden(Oracle):
    api_key: Secret = "sk-in-the-source"

@dataclass(frozen=True)
class Careless:
    api_key: str = ""
    token: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    db_password: Any = None
    secret_number: int = 0
    reader: Reader | None = None

    def read(self, inputs): ...
    def count(self, texts): ...

@dataclass(frozen=True)
class Leaky(Careless):
    api_key: str = "sk-in-the-source"
"""


QUESTIONS = ("why?", "will it fail?", "who?", "is it lost?")


def project(folder: Path, reader: str) -> Path:
    """Writes a plug-in, a task and a config with a reader; returns the config's path."""
    rows = [
        {"id": name, "document": f"Document {name}.", "question": question}
        for name, question in zip("abcd", QUESTIONS, strict=True)
    ]
    config = f"pipelines:\n  mine:\n    tasks: [rows]\n    reader: {reader}\n"
    config += "tasks: {rows: {class: JsonLines, path: rows.jsonl}}\n"
    write_files(folder, {"oracle.py": ORACLE, "rows.jsonl": rows, "mine.yaml": config})
    return folder / "mine.yaml"


def loaded(folder: Path, reader: str, *overrides: str) -> Config:
    return load_config([project(folder, reader)], overrides, ["mine"])


def test_only_the_stage_has_a_keys_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORACLE_KEY", SECRET)
    headers = "{Authorization: $ORACLE_KEY}"
    reader = f"{{class: './oracle.py:Oracle', api_key: $ORACLE_KEY, headers: {headers}}}"
    [point] = loaded(tmp_path, reader).select(["mine"])
    built = point.build().reader
    assert built.api_key == SECRET
    assert f"Bearer {built.api_key}" == f"Bearer {SECRET}"
    assert (built.headers, built.backup) == ({"Authorization": SECRET}, None)
    assert SECRET not in repr(built)
    assert "api_key='$ORACLE_KEY'" in repr(built)
    resolved: Any = point.resolved()["reader"]
    assert resolved["api_key"] == resolved["headers"]["Authorization"] == "$ORACLE_KEY"
    assert point.variables() == ("$ORACLE_KEY",)


def test_a_key_can_be_a_default_an_override_or_the_point_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORACLE_KEY", SECRET)
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    config = loaded(tmp_path, "{class: './oracle.py:Default'}")
    assert config.select(["mine"])[0].build().reader.api_key == SECRET
    config = loaded(tmp_path, "{class: './oracle.py:Default'}", "reader.api_key=$OTHER_KEY")
    assert config.select(["mine"])[0].build().reader.api_key == "sk-other"
    swept = "{class: './oracle.py:Oracle', api_key: [$ORACLE_KEY, $OTHER_KEY], backup: null}"
    points = loaded(tmp_path, swept).select(["mine"])
    keys = ("$ORACLE_KEY", "$OTHER_KEY")
    assert [p.name for p in points] == [f"mine@reader.api_key={key}" for key in keys]
    assert [p.build().reader.api_key for p in points] == [SECRET, "sk-other"]


def test_a_key_that_is_not_set_is_reported_when_the_stage_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ORACLE_KEY", raising=False)
    config = loaded(tmp_path, "{class: './oracle.py:Oracle', api_key: $ORACLE_KEY}")
    with pytest.raises(UserError, match="the environment variable ORACLE_KEY is not set"):
        config.select(["mine"])[0].build()
    monkeypatch.setenv("ORACLE_KEY", " ")
    with pytest.raises(UserError, match="the environment variable ORACLE_KEY is not set"):
        config.select(["mine"])[0].build()


_LITERAL = "a key must not be in a file: give the name of an environment variable, such as $OPENAI"
_UNMARKED = "looks like a key, and values from files are written to the run's files: annotate"


@pytest.mark.parametrize(
    ("reader", "fault"),
    [
        ("{class: './oracle.py:Oracle', api_key: hunter2}", f"reader.api_key: {_LITERAL}"),
        ("{class: './oracle.py:Oracle', api_key: 99hunter2 $KEY}", f"reader.api_key: {_LITERAL}"),
        ("{class: './oracle.py:Oracle', api_key: [$KEY, hunter2]}", f"reader.api_key: {_LITERAL}"),
        ("{class: './oracle.py:Oracle', api_key: {a: hunter2}}", f"reader.api_key: {_LITERAL}"),
        ("{class: './oracle.py:Oracle', api_key: {sweep: [hunter2]}}", _LITERAL),
        ("{class: './oracle.py:Oracle', api_key: 31337}", f"reader.api_key: {_LITERAL}"),
        ("{class: './oracle.py:Oracle', api_key: $K, headers: {X: hunter2}}", _LITERAL),
        ("{class: './oracle.py:Oracle', api_key: $K, backup: hunter2}", _LITERAL),
        ("{class: './oracle.py:Hidden'}", f"the default in Hidden: {_LITERAL}"),
        ("{class: './oracle.py:Leaky'}", f"the default in Leaky: {_UNMARKED}"),
        ("{class: './oracle.py:Careless', api_key: hunter2}", f"reader.api_key: {_UNMARKED}"),
        ("{class: './oracle.py:Careless', api_key: [hunter2]}", _UNMARKED),
        ("{class: './oracle.py:Careless', api_key: $KEY}", f"reader.api_key: {_UNMARKED}"),
        ("{class: './oracle.py:Careless', db_password: {sweep: [a, hunter2]}}", _UNMARKED),
        ("{class: './oracle.py:Careless', options: {x: [{hf-token: hunter2}]}}", _UNMARKED),
        ("{class: './oracle.py:Careless', reader: {class: Lead, api_key: hunter2}}", "Lead has no"),
        ("{class: './oracle.py:Careless', reader: {class: './oracle.py:Careless', api_key: hunter2"
         "}}", f"reader.reader.api_key: {_UNMARKED}"),
        ("{class: './oracle.py:Oracle'}", "Oracle needs the parameter api_key: str ($VARIABLE)"),
    ],
)  # fmt: skip
def test_a_key_in_a_config_is_not_repeated(tmp_path: Path, reader: str, fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, reader)
    assert len(raised.value.faults) == 1
    message = str(raised.value)
    assert fault in message
    assert not [secret for secret in ("hunter2", "31337", "sk-in") if secret in message]


@pytest.mark.parametrize(
    "value", ["api_key=hunter2", "api_key='hunter2", "api_key=*hunter2", "api_key=$KEY,hunter2"]
)
def test_a_key_on_the_command_line_is_not_repeated(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, "{class: './oracle.py:Oracle', api_key: $KEY}", f"reader.{value}")
    assert "hunter2" not in str(raised.value)


def test_parameters_with_names_similar_to_keys_are_allowed(tmp_path: Path) -> None:
    reader = (
        "{class: './oracle.py:Oracle', api_key: $UNSET, mask_token: '[MASK]', max_tokens: 7,"
        " organisation: $not_a_key, secret: told}"
    )
    [point] = loaded(tmp_path, reader).select(["mine"])
    resolved: Any = point.resolved()["reader"]
    assert (resolved["mask_token"], resolved["organisation"]) == ("[MASK]", "$not_a_key")
    careless = "{class: './oracle.py:Careless', token: x, secret_number: 7, options: {a: b}}"
    assert loaded(tmp_path, careless)


def test_a_constructors_error_has_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="Oracle rejects this:  is no key"):
        loaded(tmp_path, "{class: './oracle.py:Oracle', api_key: ''}")
    monkeypatch.setenv("ORACLE_KEY", "hunter2")
    with pytest.raises(ConfigError, match=r"Oracle rejects this: \$ORACLE_KEY is no key"):
        loaded(tmp_path, "{class: './oracle.py:Oracle', api_key: $ORACLE_KEY}")


def files_with(folder: Path, secret: str) -> list[str]:
    forms = [secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]
    forms += [repr(secret)[1:-1], secret.partition('"')[0]]
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(f) for f in files if any(form.encode() in f.read_bytes() for form in forms)]


def test_no_key_is_written_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORACLE_KEY", SECRET)
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    seeker = "    retriever: {class: './oracle.py:Seeker', api_key: $ORACLE_KEY}"
    oracle = "{class: './oracle.py:Oracle', api_key: $ORACLE_KEY}"
    config = project(tmp_path, f"{oracle}\n{seeker}")
    out = tmp_path / "out"
    arguments = ("run", "mine", "--out", out)
    first = leporello(*arguments, "--config", config, "--workers", "1", status=1)
    results = out / "mine" / "rows"
    before = (results / "predictions.jsonl").read_bytes()
    answers = [row["prediction"] for row in read_lines(results / "predictions.jsonl")]
    assert answers == [f"{len(SECRET)} why?", f"{len(SECRET)} who?"]
    read_failure, search_failure = read_lines(results / "failures.jsonl")
    assert "401 for Oracle(api_key='$ORACLE_KEY'" in read_failure["error"]
    assert "with key $ORACLE_KEY, ['$ORACLE_KEY']" in read_failure["error"]
    assert "401 for Seeker(api_key='$ORACLE_KEY') with key $ORACLE_KEY" in search_failure["error"]
    second = leporello(*arguments, "--config", config, *HERE, status=1)
    third = leporello(*arguments, "--config", out / "run.yaml", *HERE, status=1)
    assert (results / "predictions.jsonl").read_bytes() == before
    assert files_with(tmp_path, SECRET) == []
    for process in (first, second, third):
        assert SECRET not in process.stdout + process.stderr


def test_copies_of_a_key_are_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORACLE_KEY", SECRET)
    original = key("$ORACLE_KEY")
    unpickled = pickle.loads(pickle.dumps(original))  # noqa: S301 -- a pickle of this test
    for twin in (copy.deepcopy(original), unpickled):
        assert (twin, repr(twin), twin.variable) == (SECRET, "'$ORACLE_KEY'", "$ORACLE_KEY")
    monkeypatch.setattr("leporello.core.secrets._forms", {})
    assert redact("nothing to hide") == "nothing to hide"
    pickle.loads(pickle.dumps(original))  # noqa: S301 -- a pickle of this test
    assert redact(f"key={SECRET}") == "key=$ORACLE_KEY"


def test_a_key_is_redacted_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leporello.core.secrets._forms", {})
    Key(SECRET, "$A")
    Key(SECRET + "more", "$B")
    Key("a key with\nlines ", "$C")
    forms = [SECRET, json.dumps(SECRET), repr(SECRET), "sk-7f%2F3%2Ba%22b%27%C3%A4", str({SECRET})]
    texts = [redact(form).strip("\"'{}") for form in forms]
    assert texts == ["$A"] * 5
    assert redact(f"{SECRET}more {SECRET}mor") == "$B $Amor"
    assert redact("a+key+with%0Alines a key with\\nlines a key with\nlines") == "$C $C $C"


@pytest.mark.parametrize(
    "name", ["..", "a/../../b", "/etc", "a//b", "a/", "", "a\0b", ".git", "journal"]
)
@pytest.mark.parametrize("section", ["pipelines", "tasks"])
def test_names_that_could_lead_out_of_the_runs_folder_are_refused(
    tmp_path: Path, section: str, name: str
) -> None:
    value: Any = {"class": "Sample"} if section == "tasks" else {"reader": {"class": "Lead"}}
    config = tmp_path / "mine.yaml"
    config.write_text(json.dumps({section: {name: value}}), encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a valid name, because folders"):
        load_config([config])


def test_any_value_of_a_sweep_has_a_valid_folder_and_resolved_config(tmp_path: Path) -> None:
    values = ["../../x", "a\nb", "/.hidden//", "..", "\u202e", "a/../b", "{context} \0 {title}"]
    prompts = [f"{{context}}{value}" for value in values]
    reader = {"class": "CausalLM", "prompt": prompts, "system": {"sweep": ["..", "a/.."]}}
    config = tmp_path / "mine.yaml"
    config.write_text(json.dumps({"pipelines": {"mine": {"reader": reader}}}), encoding="utf-8")
    points = load_config([config]).select(["mine"])
    assert all(point.name.isprintable() for point in points)
    run = tmp_path / "run.yaml"
    resolved: Any = {point.name: point.resolved() for point in points}
    run.write_text(json.dumps({"pipelines": resolved}), encoding="utf-8")
    again = load_config([run])
    for point in points:
        assert again.select([point.name])[0].resolved() == point.resolved()
        folder = RunDirectory(tmp_path / "out").results(point.name, "task")
        assert folder.resolve().parent.parent == tmp_path / "out"
    assert len({safe_name(point.name) for point in points}) == len(points) == 14


@pytest.mark.parametrize("name", ["..", "a/../../b", "a\0b", "/etc/passwd"])
def test_names_in_a_manifest_cannot_lead_out_of_its_folder(tmp_path: Path, name: str) -> None:
    """This protects users who open the run of a stranger."""
    directory = RunDirectory(tmp_path)
    for path in (directory.results(name, name), directory.journals(name, name)):
        assert path.resolve().is_relative_to(tmp_path)
        assert path.resolve() != tmp_path
