# Keeps the host's snapshots, as its control user, by any POSIX shell. Set before this text: verb and name, bytes_max (of one),
# most (that the host may have) and seconds (that one may take); to send one, entry (the file of the registry that it is for).
root=/var/lib/bobbin
[ -r "$root/host" ] || exit 90
# A host that was set up before there were snapshots has none.
if ! [ -O "$root/snapshots" ] || ! [ -O "$root/pipes" ] || ! cd "$root/snapshots"; then
  case "$verb" in
  begin) exit 96 ;;
  send) exit 95 ;;
  esac
  exit 0
fi
umask 077
exec 8>>.lock || exit 93
flock -w 5 8 || exit 75

# Whoever receives one holds its lock: this one was given up.
for file in *.part; do
  if [ -f "$file" ] && flock -n "$file" true; then rm -f "$file"; fi
done

# A pipe for the user of a slot. Its folder's name is the key to it: nobody lists that, and it is on no command line.
lay() {
  find "$root/pipes" -mindepth 1 -mmin +60 -delete
  place=$(mktemp -d "$root/pipes/XXXXXXXXXXXXXXXXXXXXXXXX") || exit 93
  cd "$place" && mkfifo pipe && chmod 666 pipe && chmod 711 . && cd "$root/snapshots" || exit 93
}

# By exec: of redirections at a call, some shells keep what was there before.
detach() {
  exec </dev/null >/dev/null 2>&1 8>&-
}

# Waits for the process at the pipe, which ends early when nobody opens the other end, or the file is deleted.
attend() {
  looks=0
  while kill -0 "$1" 2>/dev/null; do
    if { [ -e pipe ] && [ "$looks" -ge 100 ]; } || [ "$looks" -ge "$((seconds * 5))" ] ||
      ! [ "$root/snapshots/$file" -ef /proc/self/fd/9 ]; then
      kill "$1"
    fi
    sleep 0.2
    looks=$((looks + 1))
  done
  wait "$1"
  code=$?
  rm -f pipe
  cd "$root/snapshots" || exit
}

tidy() {
  exec 8>>.lock && flock -w 60 8 || exit
  find "$root/pipes" -mindepth 1 -empty -delete
}

# What comes is whole if it ends with the key and what the packer says of it.
receive() {
  detach
  key=${place##*/}
  cd "$place" || exit
  { exec 3<pipe && rm -f pipe && exec head -c "$((bytes_max + 26))" <&3 >&9; } &
  attend "$!"
  # Most of it while nobody waits for the lock.
  sync "$file"
  tidy
  [ "$file" -ef /proc/self/fd/9 ] || exit
  bytes=$(wc -c <"$file")
  said=$code$(tail -c 25 "$file" | tr -d '\0')
  if [ "$code" = 1 ]; then
    why=full
  elif [ "$bytes" -gt "$((bytes_max + 25))" ]; then
    why=large
  elif [ "$said" = "0${key}2" ]; then
    why=unread
  elif [ "$said" = "0${key}0" ] && truncate -s -25 "$file" && sync "$file"; then
    mv "$file" "$name.tar.zst"
    exit
  else
    rm -f "$file"
    exit
  fi
  : >"$file"
  mv "$file" "$name.failed-$why"
}

# Only while the slot is that sandbox's: from the beginning of its end on, nobody else is to get it.
send() {
  detach
  cd "$place" || exit
  { exec 3>pipe && rm -f pipe && [ -e "$root/registry/$entry" ] && exec cat <&9 >&3; } &
  attend "$!"
  tidy
}

case "$verb" in
begin)
  command -v zstd >/dev/null || exit 96
  find . -name '*.failed-*' -mmin +60 -delete
  set -- "$name".*
  if [ ! -e "$1" ]; then
    count=0
    for file in *.tar.zst *.part; do
      if [ -e "$file" ]; then count=$((count + 1)); fi
    done
    [ "$count" -lt "$most" ] || exit 91
    file=$name.part
    exec 9>"$file" && flock -n 9 || exit 93
    lay
    receive &
    printf 'pipe\t%s\n' "${place##*/}"
  fi
  ;;
send)
  file=$name.tar.zst
  [ -e "$file" ] || exit 95
  exec 9<"$file" || exit 93
  lay
  send &
  printf 'pipe\t%s\n' "${place##*/}"
  ;;
forget)
  rm -f "$name".*
  ;;
esac

find . -type f -name '*.*' -printf '%f\t%s\n'
exit 0
