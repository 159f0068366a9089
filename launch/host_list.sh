# Read by launch/run, and inside plumbline: host names from a list or a host file into `hosts`, their slots, where known, into `slots_of`.
# add_list adds to them under the name `origin`, with `slots` each, and refuses a mistake with exit code `origin_code`.
# shellcheck shell=bash
readonly most_hosts=10000
hosts=() origin='' origin_code=64 slots='' hint='' # `hint` ends what a name is refused with
declare -A slots_of=()

# add_host NAME[:SLOTS]
add_host() {
  local LC_ALL=C # ranges of letters
  if [[ $1 =~ ^(.+):([1-9][0-9]{0,5})$ ]]; then
    local slots=${BASH_REMATCH[2]}
    set -- "${BASH_REMATCH[1]}"
  fi
  [[ $1 =~ ^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$ && $1 != *..* ]] ||
    refuse $origin_code "$origin: ${1@Q} is not a host name; write node[1-4], node1..4 or n1,n2$hint"
  [ -z "${slots_of[$1]+named}" ] || refuse $origin_code "$origin: host $1 is listed twice; list it once$hint"
  [ ${#hosts[@]} -lt $most_hosts ] || refuse $origin_code "$origin: expected at most $most_hosts hosts; pass fewer"
  slots_of[$1]=$slots
  hosts+=("$1")
}

# add_range BEFORE RANGE AFTER: numbers are as wide as the first one.
add_range() {
  [[ $2 =~ ^([0-9]{1,9})(-([0-9]{1,9}))?$ ]] ||
    refuse $origin_code "$origin: ${2@Q}: expected a number or range; write node[1-4] or node[01-04,7]"
  local first=${BASH_REMATCH[1]} number name
  local last=${BASH_REMATCH[3]:-$first}
  ((10#$first <= 10#$last)) || refuse $origin_code "$origin: range $2 goes down; write $last-$first"
  ((10#$last - 10#$first < most_hosts)) || refuse $origin_code "$origin: range $2 has more than $most_hosts hosts; pass fewer"
  for ((number = 10#$first; number <= 10#$last; ++number)); do
    printf -v name '%0*d' ${#first} "$number"
    add_item "$1$name$3"
  done
}

add_item() {
  local before after range ranges
  if [[ $1 =~ ^([^][]*)\[([^][]*)\](.*)$ ]]; then
    before=${BASH_REMATCH[1]} after=${BASH_REMATCH[3]}
    mapfile -d , -t ranges < <(printf '%s,' "${BASH_REMATCH[2]}")
    for range in "${ranges[@]}"; do add_range "$before" "$range" "$after"; done
  elif [[ $1 =~ ^(|.*[^0-9])([0-9]+)\.\.([0-9]+)(.*)$ ]]; then
    add_range "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}-${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}"
  else
    add_host "$1"
  fi
}

# add_list TEXT: items between commas; a comma inside brackets is part of its item.
add_list() {
  local parts part item=
  mapfile -d , -t parts < <(printf '%s,' "$1")
  for part in "${parts[@]}"; do
    item+=$part
    if [[ $item == *\[* && ${item##*\[} != *\]* ]]; then
      item+=,
    else
      add_item "$item"
      item=
    fi
  done
  [ -z "$item" ] || refuse $origin_code "$origin: ${item%,} lacks a closing bracket; write node[1-4]"
}

read_hostfile() {
  local line number=0 fields field host
  [ -f "$1" ] && [ -r "$1" ] || refuse 65 "--hostfile ${1@Q}: cannot read it; pass a file of lines such as 'node1 slots=8'"
  origin_code=65
  while read -r line || [ -n "$line" ]; do
    origin="$1:$((++number))" slots=
    line=${line%$'\r'}
    read -ra fields <<<"${line%%#*}"
    for field in "${fields[@]:1}"; do
      [[ $field =~ ^(max[_-])?slots=([1-9][0-9]{0,5})$ ]] || refuse 65 "$origin: ${field@Q}: expected slots=N; write lines such as 'node1 slots=8'"
      [ -n "${BASH_REMATCH[1]}" ] || slots=${BASH_REMATCH[2]}
    done
    host=${fields[0]-}
    if [ ${#fields[@]} -eq 1 ] && [ -n "${slots_of[$host]+named}" ]; then
      slots_of[$host]=$((${slots_of[$host]:-1} + 1)) # PBS names a host once for each slot
    elif [ ${#fields[@]} -gt 0 ]; then
      add_list "${fields[0]}"
    fi
  done <"$1"
  [ ${#hosts[@]} -gt 0 ] || refuse 65 "--hostfile ${1@Q}: expected hosts; write lines such as 'node1 slots=8'"
}
