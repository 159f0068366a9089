#!/bin/sh
# bin/NAME of a bundle, or of an installed package of a CUDA build, for every NAME in libexec/ beside bin/: starts that
# program with the bundle's libraries, if any, and with CUDA's own, which are looked for in this order:
#   the folders in $PLUMB_CUDA_LIBRARIES (separated by colons), the bundle's lib/cuda, the nvidia packages of python3,
#   $LD_LIBRARY_PATH, the toolkit ($CUDA_HOME, nvcc's, /usr/local/cuda), the system.
# The first of these places that holds all of them is taken; if none does, each library from the first that holds it.
# Needs a POSIX shell and nothing else. Exit code 69: a library was not found.
program=${0##*/}
own=$0
[ ! -L "$own" ] || own=$(readlink -f "$own") # a package's /usr/bin/NAME
case $own in
  */*) bundle=${own%/*}/.. ;;
  *) bundle=.. ;;
esac
bundle=$(cd "$bundle" && pwd) || exit 69

# Lines of folders, one line per place to look at; the folders of one line are separated by colons.
places() {
  echo "${PLUMB_CUDA_LIBRARIES:-}"
  echo "$bundle/lib/cuda"
  # The packages of CUDA 13 share a folder, nvidia/cu13; those of CUDA 12 have one each.
  python3 -c '
import glob, site
for packages in site.getsitepackages() + [site.getusersitepackages()]:
    print(":".join(sorted(glob.glob(packages + "/nvidia/*/lib"))))' 2>/dev/null
  echo "${LD_LIBRARY_PATH:-}"
  nvcc=$(command -v nvcc)
  echo "${CUDA_HOME:+$CUDA_HOME/lib64:}${nvcc:+${nvcc%/bin/nvcc}/lib64:}/usr/local/cuda/lib64"
  echo "/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/usr/lib64:/lib64"
}

# folder_of LIBRARY FOLDER:…: the first of the folders that holds the library, in $folder, or empty.
folder_of() {
  library=$1
  IFS=:
  for folder in $2; do
    [ ! -e "$folder/$library" ] || { unset IFS; return; }
  done
  unset IFS
  folder=
}

# The libraries that the program wants from CUDA, out of lines "PROGRAM LIBRARY".
wanted_libraries() {
  while read -r name library; do
    [ "$name" != "$program" ] || echo "$library"
  done <"$bundle/lib/cuda_libraries.txt"
}

# Sets cuda_folders, or ends the program.
find_cuda_libraries() {
  cuda_folders=
  wanted=$(wanted_libraries)
  [ -n "$wanted" ] || return 0
  everywhere=
  newline='
'
  rest=$(places)$newline
  while [ -n "$rest" ]; do
    place=${rest%%"$newline"*}
    rest=${rest#*"$newline"}
    everywhere=$everywhere:$place
    complete=yes
    for wish in $wanted; do
      folder_of "$wish" "$place"
      [ -n "$folder" ] || complete=no
    done
    if [ $complete = yes ]; then
      cuda_folders=$place
      return 0
    fi
  done
  for wish in $wanted; do
    folder_of "$wish" "$everywhere"
    if [ -z "$folder" ]; then
      echo "$program: $wish was not found in PLUMB_CUDA_LIBRARIES, python3's nvidia packages, LD_LIBRARY_PATH," \
        "the CUDA toolkit or the system; set PLUMB_CUDA_LIBRARIES to its folder or install it for python3" >&2
      exit 69
    fi
    cuda_folders=$cuda_folders:$folder
  done
}

if [ ! -x "$bundle/libexec/$program" ]; then
  echo "$program: no such program in $bundle/libexec" >&2
  exit 69
fi
find_cuda_libraries
[ -z "$cuda_folders" ] || export PLUMB_CUDA_LIBRARIES="$cuda_folders" # ranks that mpirun starts need not look again
export LD_LIBRARY_PATH="$bundle/lib${cuda_folders:+:$cuda_folders}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

if [ -d "$bundle/mpi" ]; then
  # Open MPI and PMIx find their plugins below these; a rank without mpirun must not look for one to start.
  export OPAL_PREFIX="$bundle/mpi" OPAL_SYSCONFDIR="$bundle/mpi/etc"
  export PMIX_PREFIX="$bundle/mpi/pmix" PMIX_LIBDIR="$bundle/mpi/pmix/lib" PMIX_DATADIR="$bundle/mpi/pmix/share"
  export OMPI_MCA_ess_singleton_isolated=1
  [ -n "${HOME:-}" ] || export HOME=/ # PMIx ends in a crash for a user with no home
  # Without a shell to other nodes mpirun stays on this one.
  command -v ssh >/dev/null || command -v rsh >/dev/null || export OMPI_MCA_plm=isolated
fi
exec "$bundle/libexec/$program" "$@"
