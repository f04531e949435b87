# Works on one slot of the host, as its user, by any POSIX shell. Set before this text: verb, slot and name of the sandbox;
# for "left" the processes that were seen before.
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

case "$verb" in
prepare)
  for one in * .[!.]* ..?*; do
    case "$one" in "$name" | .stopped) continue ;; esac
    if [ -e "$one" ] || [ -L "$one" ]; then exit 92; fi
  done
  mkdir -p "$name/tmp" && rm -f .stopped || exit 93
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
