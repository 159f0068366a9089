#!/usr/bin/env bash
# make_images.sh FOLDER [WIDTH HEIGHT GRAIN]: a small image folder to try the input pipeline on, 4 classes of 12 JPEG
# files of colored waves, 128 x 96 pixels, or of another size with grain of so many gray levels, which makes files as
# large as those of photos. Does nothing if FOLDER is there. Needs cjpeg (Debian's libjpeg-turbo-progs).
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit

if [ $# -ne 1 ] && [ $# -ne 4 ]; then
  echo "usage: make_images.sh FOLDER [WIDTH HEIGHT GRAIN]" >&2
  exit 64
fi
folder=$1 width=${2:-128} height=${3:-96} grain=${4:-0}
[ ! -e "$folder" ] || exit 0
command -v cjpeg >/dev/null ||
  give_up 69 "cjpeg is not on this machine; install libjpeg-turbo-progs (launch/install_deps.sh does)"

# wave CLASS IMAGE: a picture in the text form of the PPM format.
wave() {
  awk -v class="$1" -v image="$2" -v width="$width" -v height="$height" -v grain="$grain" 'BEGIN {
    srand(12 * class + image)
    print "P3"; print width, height; print 255
    for (y = 0; y < height; ++y)
      for (x = 0; x < width; ++x) {
        a = sin((x * (class + 1) + y * image) / 19); b = cos((y * (class + 2) - x * image) / 23)
        g = grain * (rand() - 0.5)
        printf "%d %d %d\n", between(128 + 100 * a + g), between(128 + 100 * b + g), between(40 + 50 * class + 30 * a * b + g)
      }
  }
  function between(level) { return level < 0 ? 0 : level > 255 ? 255 : level }'
}

unfinished=$folder.unfinished
rm -rf "$unfinished"
for class in 0 1 2 3; do
  mkdir -p "$unfinished/wave_$class"
  for image in 0 1 2 3 4 5 6 7 8 9 10 11; do
    wave "$class" "$image" | cjpeg -quality 90 >"$unfinished/wave_$class/$image.jpg"
  done
done
mv "$unfinished" "$folder"
