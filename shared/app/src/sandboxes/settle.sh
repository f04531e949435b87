# Puts a new checkout in its place. Where the disk is that of a prebuild, the files that its set-up has left stay, and
# only what the commit has otherwise is written; nothing of its repository is kept. Set in the environment: BOBBIN_OF,
# the sandbox. `root` is the sandbox's working directory.
#
# .bobbin/prebuild names the builder until the checkout stands; .bobbin/prebuilt names the sandbox from then on.
holds() { [ -f "$root/.bobbin/$1" ] && [ ! -L "$root/.bobbin/$1" ] && head -c 300 "$root/.bobbin/$1"; }
is_of_builder() { [ -n "$(holds prebuild)" ] && [ "$(holds prebuild)" != "$BOBBIN_OF" ]; }
# Whether the disk is that of a prebuild, and whether no set-up of this sandbox has begun on it: it may have been created
# again under its generation.
say_prebuilt() {
  if [ -n "$BOBBIN_OF" ] && [ "$(holds prebuilt)" = "$BOBBIN_OF" ]; then echo prebuilt; fi
  if [ "$(holds set-up/of)" != "$BOBBIN_OF" ]; then echo new; fi
}
is_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
is_folder() { [ -d "$1" ] && [ ! -L "$1" ]; }
is_gone() { [ ! -e "$1" ] && [ ! -L "$1" ]; }
# settle FROM TO
settle() {
  rm -rf "$root/.bobbin/prebuilt"
  if is_of_builder; then
    if adopted "$1" "$2"; then
      echo new
      return 0
    fi
    # Nothing of the builder's is taken for the checkout.
    rm -rf "$2" "$root/.bobbin/prebuild" "$root/.bobbin/prebuilt"
    is_gone "$2" && is_gone "$root/.bobbin/prebuild" && is_folder "$1/.git" || return 1
  fi
  if mv -T "$1" "$2"; then echo new; else [ -e "$2/.git" ] || return 1; fi
}
# True: the checkout stands, in the files of the prebuild. False: FROM is as it was.
adopted() {
  files="$root/.bobbin/prebuild.files" index="$root/.bobbin/prebuild.index"
  rm -rf "$files" "$index"
  is_gone "$files" && is_folder "$2" && mv -T "$2" "$files" || return 1
  # Of the builder's repository counts alone which files it had: what the commit no longer has is removed.
  if is_folder "$files/.git" && is_file "$files/.git/index"; then cp "$files/.git/index" "$index" || return 1; fi
  rm -rf "$files/.git"
  is_gone "$files/.git" && mv "$1/.git" "$files/.git" || return 1
  if cp "$files/.git/index" "$files/.git/index.fresh" && wrote "$files" "$index" &&
    printf '%s\n' "$BOBBIN_OF" >"$root/.bobbin/prebuilt" && rm "$root/.bobbin/prebuild" && mv -T "$files" "$2"; then
    rm -f "$2/.git/index.fresh"
    return 0
  fi
  mv "$files/.git" "$1/.git" && mv -f "$1/.git/index.fresh" "$1/.git/index"
  return 1
}
# Writes what differs from the commit into the files. wrote FILES INDEX
wrote() {
  of_files() {
    GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
      git -C "$files" -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@" </dev/null >/dev/null 2>&1
  }
  if is_file "$2"; then mv "$2" "$1/.git/index" || return 1; fi
  # Which files are as they were is seen first: they keep their times.
  of_files update-index -q --refresh
  of_files reset --quiet --hard && return 0
  rm -f "$1/.git/index"
  of_files reset --quiet --hard
}
