#!/usr/bin/env bash
# field_jpegs.sh BENCH_RESNET50 ROOT: files that stopped people's image loaders, by their public threads
# (tensorflow/models#997, AlexeyAB/darknet#5293, IntelLabs/distiller#163), each one in a folder beside good ones. What
# libjpeg decodes is used; the rest is skipped and counted.
. "${BASH_SOURCE[0]%/*}/../../prelude.sh"
program=$1 root=$2
needs python3 python3
needs cjpeg libjpeg-turbo-progs
"$root/launch/make_images.sh" "$scratch/good" >/dev/null
good=$scratch/good/wave_2/3.jpg

python3 - "$good" "$scratch" <<'P'
import os, struct, sys, zlib
good, folder = open(sys.argv[1], "rb").read(), sys.argv[2]

def write(case, data, name="odd.jpg"):
    os.makedirs(f"{folder}/{case}/b")
    open(f"{folder}/{case}/b/{name}", "wb").write(data)

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

tables, middle = good.index(b"\xff\xdb"), len(good) * 2 // 3
exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0" + b"\xff\xff\xff\x7f" * 2
frame = good.index(b"\xff\xc0")
write("used_byte_before_end", good[:-2] + b"\0" + good[-2:])
write("used_bytes_before_tables", good[:tables] + b"\0\0" + good[tables:])
write("used_trailing", good + b"\0" * 100 + b"MotionPhoto_Data" * 9)
write("used_broken_exif", good[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + good[2:])
write("used_capitals", good, "odd.JPEG")
write("skipped_empty", b"")
write("skipped_cut", good[: len(good) // 2])
write("skipped_marker_44", good[:middle] + b"\xff\x44" + good[middle + 2 :])
write("skipped_page", b"<!DOCTYPE html><html><body>This photo is no longer available</body></html>")
write("skipped_gif", b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;")
write("skipped_12_bit", good[: frame + 1] + b"\xc1" + good[frame + 2 : frame + 4] + b"\x0c" + good[frame + 5 :])
write("skipped_png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
      + chunk(b"IDAT", zlib.compress((b"\0" + b"\x5a" * 24) * 8)) + chunk(b"IEND", b""), "n02105855_2933.JPEG")
P
for way in grayscale progressive arithmetic; do
  mkdir -p "$scratch/used_$way/b"
  djpeg "$good" | cjpeg -$way -quality 90 >"$scratch/used_$way/b/odd.jpg"
done

for folder in "$scratch"/used_* "$scratch"/skipped_*; do
  mkdir "$folder/a"
  cp "$scratch"/good/wave_0/[012].jpg "$folder/a"
  cp "$scratch"/good/wave_1/[012].jpg "$folder/b"
  message="(${folder##*/})"
  try "$program" --device cpu --threads 1 --data "$folder" --image-size 32 --bs 7 --iters 2 --warmup 1 --lr 0 \
    --log-dir "$scratch/logs" --output "$scratch/runs"
  expect_code 0
  case $folder in
    */used_*) [[ $output != *skipped* ]] || fail "${folder##*/} is skipped: $output" ;;
    *) expect_word 'skipped 1 corrupt image' && expect_word "${folder##*/}/b/" ;;
  esac
done
