# Works on one slot of the host, as its user, by any POSIX shell. Set before this text: verb, slot and name of the sandbox;
# for "left" the processes that were seen before; of (the sandbox whose snapshot this one begins with), pipe and seconds.
root=/var/lib/bobbin
disk="$root/$slot/disk"
[ -r "$root/host" ] && [ -O "$disk" ] && cd "$disk" 2>/dev/null || exit 90
umask 077

# Our user's processes but this script and the login that runs it, each with the time of its start: PID:START.
processes() {
  own=$(id -u)
  for place in /proc/[0-9]*; do
    pid=${place#/proc/}
    case " $$ $PPID " in *" $pid "*) continue ;; esac
    owner= state= parent=
    while read -r key value _; do
      case "$key" in
      State:) state=$value ;;
      PPid:) parent=$value ;;
      Uid:) owner=$value && break ;;
      esac
    done 2>/dev/null <"$place/status"
    if [ "$owner" != "$own" ] || [ "$state" = Z ] || [ "$parent" = "$$" ]; then continue; fi
    # What stands behind the name in brackets, which may hold anything: field 22 of all is the 20th of it.
    line=$(cat "$place/stat" 2>/dev/null) || continue
    set -- ${line##*)}
    [ $# -ge 20 ] && printf '%s:%s ' "$pid" "${20}"
  done
}

# Opens the control user's pipe both ways, until whoever is at its other end has taken its name away. Who leaves both ends then
# and goes on at one sees that nobody is at the other.
meet() {
  exec </dev/null >/dev/null 2>&1 3<>"$root/pipes/$pipe/pipe"
  tries=0
  while [ -e "$root/pipes/$pipe/pipe" ]; do
    [ "$tries" -lt 400 ] || exit
    sleep 0.05
    tries=$((tries + 1))
  done
}

pack() {
  meet
  # The packer of a snapshot that was given up may still be ending.
  flock -w 60 7 || exit
  exec 4>/proc/self/fd/3 3>&-
  tar=$({
    { timeout "$seconds" tar -C "$name" --exclude=./tmp -Scf - . 4>&-; echo $? >&5; } | timeout "$seconds" zstd -qc >&4
  } 5>&1)
  # A file that changed while it was read is none of tar's failures; one that cannot be read is told.
  case "$? $tar" in
  "0 0" | "0 1") printf '%s0' "$pipe" >&4 ;;
  "0 2") printf '%s2' "$pipe" >&4 ;;
  esac
}

clear_half() {
  chmod -R u+rwX .unpacking
  find .unpacking -delete
}

unpack() {
  meet
  exec 4</proc/self/fd/3 3>&-
  clear_half
  mkdir .unpacking || exit
  zstd=$({
    { timeout "$seconds" zstd -qdc <&4; echo $? >&5; } | timeout "$seconds" tar -C .unpacking --no-same-owner -xpf -
  } 5>&1)
  case "$zstd $?" in
  "0 0") chmod u+rwx .unpacking && move_in && mkdir -p .unpacking/tmp && mv -T .unpacking "$name" ;;
  # Another try would be no better.
  "0 1" | "0 2" | "127 "*) clear_half && : >.broken ;;
  *) clear_half ;;
  esac
}

# The other sandbox had another directory: text that names it and links into it are changed to this one. What cannot be stays.
move_in() {
  export LC_ALL=C
  was="$root/[0-9][0-9]*/disk/$of\b"
  find .unpacking -path '*/.git/objects' -prune -o -type f -exec grep -lIZ "$was" {} + |
    xargs -0 -r sed -i "s#$was#$disk/$name#g"
  # Above that something was killed.
  [ $? -le 123 ] || return
  find .unpacking -type l -lname "$root/*/disk/$of*" -exec sh -c '
    change=$1
    shift
    for link; do
      ln -sfn "$(readlink "$link" | sed "$change")" "$link"
    done' sh "s#^$was#$disk/$name#" {} +
}

case "$verb" in
prepare)
  for one in * .[!.]* ..?*; do
    case "$one" in "$name" | .stopped | .unpacking | .broken) continue ;; esac
    if [ -e "$one" ] || [ -L "$one" ]; then exit 92; fi
  done
  if [ -n "$of" ] && ! flock -n . true; then
    echo underway
    exit 0
  elif [ -n "$of" ] && [ ! -d "$name" ]; then
    [ ! -e .broken ] || exit 95
    echo absent
    exit 0
  fi
  mkdir -p "$name/tmp" && rm -f .stopped || exit 93
  ;;
# One at a time.
pack)
  [ -d "$name" ] || exit 94
  exec 7<. || exit 93
  pack &
  ;;
# Another caller may have begun it.
unpack)
  [ ! -d "$name" ] || exit 0
  exec 7<. && flock -n 7 || exit 0
  unpack &
  ;;
wake)
  [ -d "$name" ] || exit 94
  rm -f .stopped || exit 93
  ;;
# From here on no command starts in it. What can end by itself gets the time to.
halt)
  : >.stopped || exit 93
  before=$(processes)
  for one in $before; do
    case "$(cat "/proc/${one%:*}/comm" 2>/dev/null)" in sshd*) ;; *) kill -TERM "${one%:*}" 2>/dev/null ;; esac
  done
  tries=0
  while [ $tries -lt 20 ]; do
    waits=
    for one in $(processes); do
      case "$(cat "/proc/${one%:*}/comm" 2>/dev/null)" in '' | sshd*) ;; *) waits=1 ;; esac
    done
    [ -n "$waits" ] || break
    sleep 0.1
    tries=$((tries + 1))
  done
  processes
  ;;
# All of them in one call of the kernel's, with the login that asks for it.
kill)
  kill -KILL -1
  ;;
left)
  tries=0
  while :; do
    still=
    now=" $(processes)"
    for one in $before; do
      case "$now" in *" $one "*) still="$still $one" ;; esac
    done
    tries=$((tries + 1))
    if [ -z "$still" ] || [ $tries -ge 10 ]; then break; fi
    sleep 0.1
  done
  printf '%s' "$still"
  ;;
# The next sandbox of this slot is the same user: nothing that this one has put anywhere may be left for it.
wipe)
  own=$(id -u)
  chmod -R u+rwX . 2>/dev/null
  find . -mindepth 1 -delete || exit 93
  for place in /tmp /var/tmp /dev/shm /dev/mqueue /run/lock "/run/user/$own"; do
    find "$place" -mindepth 1 -xdev -user "$own" -delete 2>/dev/null
  done
  # Shared memory, queues of messages and semaphores, by owner or maker: the field of the owner in each list of the kernel's.
  for kind in m:8:shm q:8:msg s:5:sem; do
    list="/proc/sysvipc/${kind##*:}" option=${kind%%:*} at=${kind#*:}
    at=${at%%:*}
    [ -r "$list" ] || continue
    while read -r _ id rest; do
      set -- $rest
      [ $# -ge "$at" ] || continue
      shift $((at - 3))
      if [ "$1" = "$own" ] || [ "$3" = "$own" ]; then ipcrm "-$option" "$id" || exit 93; fi
    done <"$list"
  done
  # Else its own service manager would come up with the machine, and stay.
  if [ -e "/var/lib/systemd/linger/$(id -un)" ]; then
    loginctl disable-linger "$(id -un)" || exit 93
  fi
  ;;
esac
exit 0
