# shellcheck shell=bash
# Inputs that transcripts make: run folders and logs.

# run FOLDER [NAME=VALUE…]: a run of 6 iterations. NAME is seconds (of a step), batch, nodes, devices (per node), images
# (per second), or, with VALUE in JSON, a member of result.json or config.KEY.
run() {
  local folder=$1 seconds=0.1 batch=8 nodes=1 devices=1 images='' top='' config='' pair
  shift
  for pair in "$@"; do
    case ${pair%%=*} in
      seconds | batch | nodes | devices | images) printf -v "${pair%%=*}" %s "${pair#*=}" ;;
      config.*) pair=${pair#config.} config+="\"${pair%%=*}\": ${pair#*=},"$'\n' ;;
      *) top+="\"${pair%%=*}\": ${pair#*=},"$'\n' ;;
    esac
  done
  mkdir -p "$folder"
  top=$top config=$config awk -v seconds="$seconds" -v batch="$batch" -v nodes="$nodes" -v devices="$devices" -v images="$images" \
    '
    function list(value, count,    text) { while (count-- > 0) text = text (text ? ", " : "") value; return "[" text "]" }
    function member(name, value) { if (!index("\n" top, "\n\"" name "\":")) printf "\"%s\": %s,\n", name, value }
    function setting(name, value) { if (!index("\n" config, "\n\"" name "\":")) printf "\"%s\": %s,\n", name, value }
    BEGIN {
      CONVFMT = "%.9g"; top = ENVIRON["top"]; config = ENVIRON["config"]
      world = nodes * devices
      if (images == "") images = batch * world / seconds; else seconds = batch * world / images
      printf "{"
      member("schema", "\"plumbline.result/2\""); member("status", "\"ok\""); member("failure", "\"\"")
      member("model", "\"resnet50\""); member("precision", "\"fp32\""); member("device", "\"cpu\"")
      member("device_name", "\"some CPU, 1 thread, oneDNN 2.6.3\""); member("batch_per_device", batch)
      member("world_size", world); member("nodes", nodes); member("devices_per_node", devices)
      member("iterations", 6); member("warmup", 2); member("step_seconds", list(seconds, 6))
      member("loss", list(7, 6)); member("rank_window_seconds", list(4 * seconds, world))
      member("images_per_second", sprintf("{\"mean\": %s, \"median\": %s, \"min\": %s, \"max\": %s}", images, images, images, images))
      member("exposed_communication_seconds", 0); member("data_wait_seconds", 0); member("parameters", 25557032)
      member("macs_per_image", "4089184256"); member("memory_bytes", "{\"peak\": 1073741824}"); member("checks", "{}")
      member("log_files", "[]"); member("energy_joules_per_image", "null")
      printf "%s\"config\": {", top
      setting("data", "\"synthetic\""); setting("batch", "\"\""); setting("image_size", 224)
      printf "%s\"optimizer\": \"sgd\"}}\n", config
    }' >"$folder/result.json"
}

# log FILE SECONDS [ITERATIONS [FIRST]]: a log as Plumbline writes it, of steps of that length from iteration FIRST on; the
# file's name, <nodes>n<devices>g/<model>_b<batch>_…, says of how many images.
log() {
  local layout batch
  mkdir -p "$(dirname "$1")"
  layout=$(basename "$(dirname "$1")")
  batch=$(sed 's/.*_bz\{0,1\}\([0-9]*\)_.*/\1/' <<<"$1")
  awk -v nodes="${layout%%n*}" -v devices="${layout#*n}" -v batch="$batch" -v seconds="$2" -v n="${3:-120}" -v i="${4:-0}" '
    BEGIN {
      for (n += i; i < n; ++i) {
        ms = 36000000 + int(1000 * seconds * (i + 1) + 0.5)
        printf "2025-01-02 %02d:%02d:%02d,%03d-INFO: [Pass 0, train batch %d] \tloss 6.99900, acc1 0.00000, acc5 0.00000, lr 0.10000, elapse %.6f sec Epoch[0] Batch[%d]\tSpeed: %.2f samples/sec\n",
          int(ms / 3600000), ms / 60000 % 60, ms / 1000 % 60, ms % 1000, i, seconds, i + 1, nodes * (devices + 0) * batch / seconds
      }
    }' >>"$1"
}

# shape [PATTERN]: what JSON on standard input has: each member once, with its value, or its type where that is a number
# with a fraction or where the member's path matches PATTERN. Before them come the errors that its JSON Schema finds.
# Without SCHEMA the document's "schema" names it.
shape() { # [PATTERN [SCHEMA]]
  python3 -c '
import glob, json, os, re, sys
def check(document):
    try: import jsonschema
    except ImportError: return
    own = document.get("schema", "") if isinstance(document, dict) else ""
    kind = re.fullmatch(r"plumbline\.(\w+)/\d+", "plumbline.%s/1" % sys.argv[2] if sys.argv[2] else own)
    if not kind: return
    files = glob.glob(os.environ["SCHEMAS"] + f"/*/documents/schemas/{kind[1]}.schema.json")
    if not files: print("no JSON Schema of", kind[0])
    for file in files:
        for error in jsonschema.Draft202012Validator(json.load(open(file))).iter_errors(document):
            print("WRONG", error.json_path, error.message)
varies = re.compile(sys.argv[1] or "(?!)")
seen = {}
def walk(value, path):
    if isinstance(value, dict):
        for key, member in value.items(): walk(member, path + "." + key if path else key)
    elif isinstance(value, list):
        seen.setdefault(path, "list" if varies.search(path) else "list of %d" % len(value))
        for member in value: walk(member, path + "[]")
    elif isinstance(value, float): seen.setdefault(path, "number")
    else: seen.setdefault(path, type(value).__name__ if varies.search(path) else json.dumps(value))
document = json.load(sys.stdin)
check(document)
walk(document, "")
for path, value in seen.items(): print(path + ":", value)' "${1:-}" "${2:-}"
}

# as_user COMMAND…: by a user whom permissions bind.
as_user() {
  if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}

# two_layers FOLDER: program.json and profile.json of a step of 7 s. Forward takes 1 s a layer; backward 2 s, which
# completes the gradient "b" of 8 MiB, then "a" of 2 MiB; each update 0.5 s.
two_layers() {
  local ops
  # op NAME PHASE BUFFER ACCESS SECONDS
  op() {
    printf '{"name": "%s", "kind": "k", "phase": "%s", "lane": "compute", "seconds": %s,\n' "$1" "$2" "$5"
    printf '"roofline_seconds": 0.1, "flops_per_second": 1, "bytes_per_second": 1, "bound_by": "bandwidth",\n'
    printf '"uses": [{"operand": "x", "buffer": %s, "access": "%s"}]}' "$3" "$4"
  }
  ops="$(op a.forward forward 0 rw 1), $(op b.forward forward 0 rw 1), $(op b.backward backward 2 w 2),
$(op a.backward backward 1 w 2), $(op a.update update 1 r 0.5), $(op b.update update 2 r 0.5)"
  cat >"$1/program.json" <<END
{"format": "plumbline.program/2", "arena_bytes": 0, "ops": [$ops], "buffers":
[{"name": "x", "role": "activation", "dtype": "f32", "dims": [16], "bytes": 64},
{"name": "a", "role": "gradient", "dtype": "f32", "dims": [524288], "bytes": 2097152},
{"name": "b", "role": "gradient", "dtype": "f32", "dims": [2097152], "bytes": 8388608}]}
END
  cat >"$1/profile.json" <<END
{"format": "plumbline.profile/2", "precision": "fp32", "device": "cpu", "peak_flops_per_second": 1e12,
"peak_bytes_per_second": 1e9, "roofline_seconds": 0.1, "iteration_seconds": 7, "busy_seconds": 7, "gap_seconds": 0,
"kinds": [{"name": "k", "ops": 6, "seconds": 7, "roofline_seconds": 0.1}], "ops": [$ops]}
END
}
