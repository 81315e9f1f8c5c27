# Sourced by the scripts beside it: what they need on the machine, installed where it is missing and may be installed.

say() { printf '%s\n' "$*" >&2; }

die() {
	say "error: $*"
	exit 1
}

on_ci() { [ "${CI:-}" = true ]; }

# install_packages installs Debian packages: as root, or on CI through a sudo that asks nothing. It fails where neither
# is possible; a developer's password is not asked for.
install_packages() {
	command -v apt-get >/dev/null || return 1
	local as_root=()
	if [ "$(id -u)" -ne 0 ]; then
		on_ci && command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
		as_root=(sudo -n)
	fi
	say "installing $*"
	# A bare machine has no package lists yet, or old ones.
	"${as_root[@]}" apt-get update -qq </dev/null >&2 || say "apt-get update failed; trying with the lists that are there"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >&2
}

need_go() {
	command -v "$GO" >/dev/null || die "Go is missing: install Go 1.26 or newer (the package golang-go of a distribution may be too old)"
	"$GO" version >&2 || die "this Go cannot build the module: see the go line of go.mod"
}

has_redis() {
	if [ -n "${SMALLAGE_REDIS_SERVER:-}" ]; then
		command -v "$SMALLAGE_REDIS_SERVER" >/dev/null
	else
		command -v redis-server >/dev/null || command -v valkey-server >/dev/null
	fi
}

# need_redis makes sure of a real server program. Tests start their own servers with it.
need_redis() {
	has_redis && return
	[ -z "${SMALLAGE_REDIS_SERVER:-}" ] || die "SMALLAGE_REDIS_SERVER=$SMALLAGE_REDIS_SERVER: there is no such program"
	install_packages redis-server && has_redis && return
	local advice="install Redis 6.2 or newer, or Valkey (on Debian and Ubuntu: apt-get install redis-server)"
	on_ci && die "redis-server is missing and could not be installed: $advice"
	say "redis-server is missing and may not be installed from here: tests that need it are SKIPPED; $advice"
}

# race_flag prints -race where the race detector can be built, which takes a C compiler.
race_flag() {
	local cc
	cc=$("$GO" env CC)
	if ! command -v "${cc%% *}" >/dev/null; then
		if ! install_packages gcc libc6-dev; then
			on_ci && die "a C compiler is missing, which go test -race needs: install one (on Debian and Ubuntu: apt-get install gcc libc6-dev)"
			say "a C compiler is missing: testing WITHOUT the race detector (on Debian and Ubuntu: apt-get install gcc libc6-dev)"
			return
		fi
	fi
	printf '%s' -race
}
