# Read by launch/run: write_mpijob fills in mpijob.yaml beside this file.
# shellcheck shell=bash disable=SC2154 # launch/run's variables

# quoted WORD…: the words as YAML's double-quoted strings, in a list.
quoted() {
  local word list=''
  for word in "$@"; do
    word=${word//\\/\\\\}
    word=${word//\"/\\\"}
    word=${word//$'\n'/\\n}
    word=${word//$'\t'/\\t}
    list+=", \"$word\""
  done
  echo "[${list#, }]"
}

# The forwarded variables as the ConfigMap's data.
environment() {
  local name value data=''
  for name in "${forwarded[@]}"; do
    value=$(quoted "${!name}")
    value=${value#[}
    data+=", $name: ${value%]}"
  done
  echo "{${data#, }}"
}

resources() {
  local limits=''
  ! has_gpus || limits="nvidia.com/gpu: $per_host"
  [ -z "$cores" ] || limits+="${limits:+, }cpu: $((cores * per_host))"
  echo "{limits: {$limits}}"
}

# Hosts that are named are those that the scheduler may take.
affinity() {
  [ ${#hosts[@]} -gt 0 ] || { echo '{}' && return; }
  echo "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions:" \
    "[{key: kubernetes.io/hostname, operator: In, values: $(quoted "${hosts[@]}")}]}]}}"
}

write_mpijob() {
  local text values word
  mpirun_line
  for word in "${command[@]}"; do
    [[ ${word//[$'\n\t']/} != *[[:cntrl:]]* ]] || refuse 64 "${word@Q} has control characters, which a manifest cannot hold; leave them out"
  done
  text=$(<"${BASH_SOURCE[0]%/*}/mpijob.yaml")
  text=${text//@NAME@/"plumbline-${count}n${per_host}g"}
  text=${text//@IMAGE@/"$image"}
  text=${text//@WORKERS@/"$count"}
  text=${text//@SLOTS@/"$per_host"}
  values=$(resources)
  text=${text//@RESOURCES@/"$values"}
  values=$(affinity)
  text=${text//@AFFINITY@/"$values"}
  # The user's words come last: a placeholder in them stays as it is. Kubernetes reads $$ as $.
  values=$(environment)
  text=${text//@ENVIRONMENT@/"$values"}
  values=$(quoted "${command[@]//'$'/'$$'}")
  echo "${text//@COMMAND@/"$values"}"
}
