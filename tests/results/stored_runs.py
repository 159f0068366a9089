"""stored_runs.py BUILD FOLDER: every result.json below FOLDER, with today's names, is valid by the JSON Schema that BUILD has,
and a damaged one isn't. The same for links. No schema has other keys than tests/data/record_keys.json: they are a contract."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: jsonschema is missing (Debian: python3-jsonschema)")
    sys.exit(77)

schemas = {file.name.split(".")[0]: json.loads(file.read_text()) for file in pathlib.Path(sys.argv[1]).glob("*/documents/schemas/*.json")}
validators = {name: jsonschema.Draft202012Validator(schema) for name, schema in schemas.items()}
for schema in schemas.values():
    jsonschema.Draft202012Validator.check_schema(schema)
failed = False

NAMES_SINCE_1 = {"remarks": "warnings", "moments": "samples", "samples": "sample_count", "clock_reasons": "throttle_reasons",
                 "winograd_steps": "winograd_ops"}


def renamed(record):
    return {NAMES_SINCE_1.get(key, key): value for key, value in record.items()}


def stored_run(file):
    run = json.loads(file.read_text())
    if run["schema"] != "plumbline.result/1":
        return run
    run = renamed(run) | {"schema": "plumbline.result/2"}
    return run | ({"gpus": [renamed(gpu) for gpu in run["gpus"]]} if "gpus" in run else {})


def expect(condition, what):
    global failed
    if not condition:
        print(what)
        failed = True


def expect_damage_is_seen(name, good, damages):
    expect(validators[name].is_valid(good), f"{name}: {[e.message for e in validators[name].iter_errors(good)]}")
    for key, value in damages.items():
        expect(not validators[name].is_valid(good | {key: value}), f"{name}: {key} = {value} is valid")
    for key in schemas[name]["required"]:
        lacking = {other: good[other] for other in good if other != key}
        expect(not validators[name].is_valid(lacking), f"{name}: valid without {key}")


def keys_of(schema):
    keys = {key: keys_of(value) for key, value in schema.get("properties", {}).items()}
    for inner in [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", [])]:
        keys |= keys_of(inner) if isinstance(inner, dict) else {}
    return keys


contract = json.loads((pathlib.Path(__file__).parents[1] / "data" / "record_keys.json").read_text())
found = {name: keys_of(schema) for name, schema in schemas.items()}
for name, keys in found.items():
    expect(keys == contract.get(name), f"the keys of {name} are now {json.dumps(keys)}")
missing = set(contract) - set(found) - {"allreduce", "bench_arcface_config", "bench_resnet50_config", "dry_run", "targets"}  # these exist in a build with the engine
expect(not missing, f"no schema of {missing}")

files = sorted(pathlib.Path(sys.argv[2]).glob("**/result.json"))
expect(len(files) >= 40, f"{len(files)} runs are stored")
for file in files:
    for error in validators["result"].iter_errors(stored_run(file)):
        expect(False, f"{file}: {error.json_path}: {error.message}")
expect_damage_is_seen("result", stored_run(files[0]),
                      {"loss": "low", "world_size": 0, "images_per_second": {"mean": 1}, "gpus": [{}]})
link = {"latency_seconds": 5e-5, "bytes_per_second": 1e9}
expect_damage_is_seen("links", {"schema": "plumbline.links/1", "comm": "mpi", "hosts": [{"name": "n1", "devices": 2}],
                                "within_host": link, "between_hosts": None},
                      {"hosts": [{"name": "n1", "devices": 0}], "within_host": {"latency_seconds": 1}, "comm": 1})
print(f"{len(files)} runs, {sum(map(len, found.values()))} keys in {len(schemas)} schemas")
sys.exit(failed)
