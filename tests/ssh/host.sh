# A machine of its own for a test, as far as an SSH host needs one: users, directories, processes and an sshd. Run by
# unshare(1) as the first process of new mount and process namespaces. Set before this text: state (a folder that outlives
# it), port, and mode: "first" for a machine that nobody has set up, "again" for one that comes back.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
if [ "$mode" = first ]; then
  mkdir -p "$state/lib"
  cp -a /etc "$state/etc"
  rm -rf "$state"/etc/ssh
  mkdir -p "$state/etc/ssh"
  cat >"$state/etc/ssh/sshd_config" <<EOF
Include /etc/ssh/sshd_config.d/*.conf
ListenAddress 127.0.0.1
Port $port
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
PasswordAuthentication no
MaxStartups 200
LogLevel INFO
EOF
fi
[ -e "$state/etc/ssh/ssh_host_ed25519_key" ] ||
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$state/etc/ssh/ssh_host_ed25519_key"
mount --bind "$state/etc" /etc
mount --bind "$state/lib" /var/lib
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mkdir -p /run/sshd
mkdir -m 1777 /run/lock
[ ! -d /dev/mqueue ] || mount -t mqueue mqueue /dev/mqueue
getent passwd sshd >/dev/null || useradd --system --no-create-home --home-dir /run/sshd --shell /usr/sbin/nologin sshd
mount -t tmpfs -o mode=1777 tmpfs /tmp
if [ -n "$setup" ]; then
  mkdir -p /etc/ssh/sshd_config.d
  printf '%s\n' "$setup" | sh >&2
fi
exec /usr/sbin/sshd -D -e
