#!/bin/sh
# The action's first step (action.yml): makes forget ready on this runner, or says what the runner lacks.
# Nothing is turned into root here but the three settings that are named in the log.
set -eu

error() { printf '::error title=forget::%s\n' "$1"; }
notice() { printf '::notice title=forget::%s\n' "$1"; }
fail() {
  error "$1"
  exit 125
}
may_sudo() { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }

command -v node >/dev/null || fail 'Node.js is not in PATH: use actions/setup-node, with 20.19 or later, before this step'
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
  fail "Node.js $(node --version) is too old: use actions/setup-node, with 20.19 or later, before this step"

echo '::group::Install forget'
if [ -n "$FORGET_ACTION_VERSION" ]; then
  npm install --prefix "$RUNNER_TEMP/forgetfs" --no-audit --no-fund "forgetfs@$FORGET_ACTION_VERSION"
  forget=$RUNNER_TEMP/forgetfs/node_modules/.bin/forget
else
  # An earlier step of the job may have done it.
  if ! [ -f "$GITHUB_ACTION_PATH/dist/forget.cjs" ] || ! [ -d "$GITHUB_ACTION_PATH/node_modules/koffi" ]; then
    # --include: the build needs the development packages, whatever the job sets NODE_ENV to.
    (cd "$GITHUB_ACTION_PATH" && npm ci --include=dev --include=optional --no-audit --no-fund)
  fi
  forget=$GITHUB_ACTION_PATH/bin/forget
fi
echo '::endgroup::'

if ! [ -e /dev/fuse ] && may_sudo; then
  notice '/dev/fuse is missing: loading the module fuse'
  sudo -n modprobe fuse || true
fi
if [ -e /dev/fuse ] && ! { [ -r /dev/fuse ] && [ -w /dev/fuse ]; } && may_sudo; then
  notice 'this user may not open /dev/fuse: giving it mode 0666'
  sudo -n chmod 0666 /dev/fuse
fi

setting=kernel.apparmor_restrict_unprivileged_userns
if [ "$(id -u)" = 0 ]; then
  notice 'this job runs as root, and so does the command, without CAP_SYS_ADMIN and CAP_SYS_PTRACE'
elif ! unshare --user --mount --map-current-user --keep-caps true 2>/dev/null &&
  [ "$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)" = 1 ]; then
  lift=$FORGET_ACTION_LIFT
  if [ "$lift" = auto ] && [ "${RUNNER_ENVIRONMENT:-}" = github-hosted ]; then lift=true; fi
  if [ "$lift" != true ]; then
    notice "AppArmor bars user namespaces, and it was not asked to lift that (lift-apparmor-bar: true)"
  elif ! may_sudo; then
    notice "AppArmor bars user namespaces, and sudo is not to be had without a password"
  else
    notice "AppArmor bars user namespaces here: setting $setting=0 until this machine restarts"
    sudo -n sysctl -q -w "$setting=0"
  fi
fi

echo '::group::forget doctor'
if found=$("$forget" doctor); then ok=true; else ok=false; fi
printf '%s\n' "$found"
echo '::endgroup::'
if ! $ok; then
  printf '%s\n' "$found" | awk '
    /^fail / { sub(/^fail +/, ""); what = $0; getline; sub(/^ *-> /, ""); print "::error title=forget::" what ": " $0 }'
  fail 'forget cannot work on this runner: the log of "forget doctor" above says why; docs/ci.md has what a job needs'
fi
printf 'forget=%s\n' "$forget" >>"$GITHUB_OUTPUT"
