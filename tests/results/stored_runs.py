"""stored_runs.py RESULT_SCHEMA FOLDER: every result.json below FOLDER is valid by the schema, and a damaged one isn't."""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: jsonschema is missing (Debian: python3-jsonschema)")
    sys.exit(77)

schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
files = sorted(pathlib.Path(sys.argv[2]).glob("**/result.json"))
failed = len(files) < 40
for file in files:
    for error in validator.iter_errors(json.loads(file.read_text())):
        print(f"{file}: {error.json_path}: {error.message}")
        failed = True

run = json.loads(files[0].read_text())
for key, value in {"loss": "low", "world_size": 0, "images_per_second": {"mean": 1}, "gpus": [{}]}.items():
    if validator.is_valid(run | {key: value}):
        print(f"{key} = {value} is valid")
        failed = True
for key in schema["required"]:
    if validator.is_valid({other: run[other] for other in run if other != key}):
        print(f"valid without {key}")
        failed = True
print(f"{len(files)} runs, {len(schema['properties'])} keys")
sys.exit(failed)
