# Makes this machine a host of Bobbin's sandboxes. Read it, then run it as root; run it again after changing a line above.
#
# It makes a control user, who keeps the list of sandboxes and their snapshots, and one user for each sandbox that the host may
# have. Each has a directory that nobody else reads, and logs in with Bobbin's key alone: without terminal, agent or X11, and
# forwarding to nothing but its own port of loopback. The configuration of sshd is added to, by a file of its own that concerns
# these users alone. Nothing else on the machine is changed. Nobody but them is to be called as these users are.
set -eu
umask 022
root=/var/lib/bobbin
stop() {
  echo "$*" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || stop "Run this as root."
for program in sshd useradd usermod flock timeout tar zstd find head install getent ipcrm; do
  PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || stop "The program $program is missing: install it first."
done
PATH="$PATH:/usr/sbin:/sbin"

# A user with this home, who has no password and cannot be given one by guessing.
make_user() {
  if home=$(getent passwd "$1" | cut -d: -f6) && [ -n "$home" ]; then
    [ "$home" = "$2" ] || stop "There is a user $1 already, who is none of this script's: choose another --user."
  else
    useradd --system --user-group --home-dir "$2" --no-create-home --shell /bin/sh "$1"
  fi
  usermod --password '*' "$1"
}

install -d -m 755 "$root" "$root/keys"
make_user "$user" "$root"
install -d -m 700 -o "$user" -g "$user" "$root/registry" "$root/snapshots"
# What goes from a sandbox to its snapshot and back takes a way through here, which is found by whoever was told it.
install -d -m 711 -o "$user" -g "$user" "$root/pipes"
printf 'restrict %s\n' "$key" >"$root/keys/$user"

slot=1
users="$user"
while [ "$slot" -le "$sandboxes" ]; do
  name="$user-$slot"
  make_user "$name" "$root/$slot"
  # The home itself is root's, so that nothing in a sandbox decides what a login does.
  install -d -m 750 -o root -g "$name" "$root/$slot"
  install -d -m 700 -o "$name" -g "$name" "$root/$slot/disk"
  printf 'restrict,port-forwarding,permitopen="127.0.0.1:%s" %s\n' "$((first_port + slot))" "$key" >"$root/keys/$name"
  # Jobs that outlive a sandbox would belong to the next one. Where there is no at.deny, at is for root alone already.
  for deny in /etc/cron.deny /etc/at.deny; do
    if [ -e "$deny" ] || { [ "$deny" = /etc/cron.deny ] && [ -d /etc/cron.d ]; }; then
      grep -qxF "$name" "$deny" 2>/dev/null || printf '%s\n' "$name" >>"$deny"
    fi
  done
  # Bounds, where systemd rules the machine: of all that the user runs together.
  if [ -d /run/systemd/system ] && [ -n "$memory$cpu" ]; then
    place="/etc/systemd/system/user-$(id -u "$name").slice.d"
    install -d -m 755 "$place"
    {
      echo "[Slice]"
      [ -z "$memory" ] || echo "MemoryMax=$memory"
      [ -z "$cpu" ] || echo "CPUQuota=$cpu"
      echo "TasksMax=4096"
    } >"$place/bobbin.conf"
  fi
  users="$users,$name"
  slot=$((slot + 1))
done

install -d -m 755 /etc/ssh/sshd_config.d
cat >"/etc/ssh/sshd_config.d/$user.conf" <<EOF
# Written by bobbin sandbox host ssh.
Match User $users
  AuthorizedKeysFile $root/keys/%u
  AuthenticationMethods publickey
  AllowTcpForwarding local
  AllowStreamLocalForwarding no
  AllowAgentForwarding no
  X11Forwarding no
  PermitTTY no
  PermitTunnel no
  PermitUserRC no
Match all
EOF
sshd -t || stop "sshd does not take its configuration: see above."
sshd -T -C "user=$user-1,host=localhost,addr=127.0.0.1" | grep -qiF "authorizedkeysfile $root/keys/%u" ||
  stop "sshd does not read /etc/ssh/sshd_config.d: add 'Include /etc/ssh/sshd_config.d/*.conf' at the top of /etc/ssh/sshd_config, and run this again."

# Read by every call from outside: the host is ready from here on.
printf 'sandboxes=%s\nfirst_port=%s\n' "$sandboxes" "$first_port" >"$root/host.new"
mv "$root/host.new" "$root/host"

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl reload ssh 2>/dev/null || systemctl reload sshd || echo "Reload sshd."
  if grep -qs '^ *KillUserProcesses *= *yes' /etc/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf; then
    echo "systemd-logind ends what users leave running: set KillUserProcesses=no, or no agent outlives the login that starts it."
  fi
else
  echo "Reload sshd."
fi
for program in git opencode; do
  command -v "$program" >/dev/null || echo "Install $program for all users: agents need it."
done
echo "Ready for $sandboxes sandboxes. This host for ssh_hosts (put in its name and address):"
key_file=/etc/ssh/ssh_host_ed25519_key.pub
printf '{"name":"%s","address":"%s","host_key":"%s","user":"%s","sandboxes":%s}\n' \
  "$(uname -n | tr 'A-Z.' 'a-z-')" "$(uname -n)" "$(cut -d' ' -f1,2 "$key_file" 2>/dev/null)" "$user" "$sandboxes"
