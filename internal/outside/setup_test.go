package outside_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is a folder that stands for everything on a machine's PATH.
type machine struct {
	bin string
	log string // what apt-get and sudo were told
}

func newMachine(t *testing.T) machine {
	t.Helper()
	dir := t.TempDir()
	m := machine{bin: filepath.Join(dir, "bin"), log: filepath.Join(dir, "log")}
	require.NoError(t, os.Mkdir(m.bin, 0o755))
	for _, program := range []string{"bash", "env", "dirname", "touch", "chmod", "mktemp", "rm", "cat"} {
		path, err := exec.LookPath(program)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(m.bin, program)))
	}
	m.has(t, "go", `if [ "$1" = env ]; then echo gcc; fi`)
	m.has(t, "id", "echo 0")
	return m
}

// has puts a program on the machine.
func (m machine) has(t *testing.T, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(m.bin, name), []byte("#!"+filepath.Join(m.bin, "bash")+"\n"+script+"\n"), 0o755))
}

// hasApt puts an apt-get there that installs the programs which the packages are for.
func (m machine) hasApt(t *testing.T) {
	m.has(t, "apt-get", `
echo "apt-get $*" >>"$LOG"
for word in "$@"; do
	case $word in redis-server | gcc | make) touch "$BIN/$word" && chmod +x "$BIN/$word" ;; esac
done`)
}

// run runs lines of a script that has sourced the set-up.
func (m machine) run(t *testing.T, lines string, env ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.bin, "bash"), "-euo", "pipefail", "-c", ". .ci/setup.sh\n"+lines)
	cmd.Dir = repository(t)
	cmd.Env = append([]string{"PATH=" + m.bin, "BIN=" + m.bin, "LOG=" + m.log, "GO=go"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func (m machine) told(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(m.log)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(text)
}

const setUp = "need_go; need_redis; race=$(race_flag); echo \"race: $race\""

func TestSetUpInstallsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, ci := range []string{"CI=true", "CI="} {
		m := newMachine(t)
		m.hasApt(t)
		out, ok := m.run(t, setUp, ci)
		require.True(t, ok, out)
		require.Contains(t, out, "race: -race")
		told := m.told(t)
		require.Less(t, strings.Index(told, "apt-get update"), strings.Index(told, "redis-server"), told)
		require.Contains(t, told, "install -y -qq --no-install-recommends redis-server\n")
		require.Contains(t, told, "install -y -qq --no-install-recommends gcc libc6-dev\n")
	}
}

func TestSetUpInstallsNothingThatIsThere(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"redis-server", "valkey-server"} {
		m := newMachine(t)
		m.hasApt(t)
		m.has(t, server, "")
		m.has(t, "gcc", "")
		out, ok := m.run(t, setUp, "CI=true")
		require.True(t, ok, out)
		require.Empty(t, m.told(t))
	}
}

func TestSetUpFailsOnCIWhereTestsCannotRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t) // without apt-get
	out, ok := m.run(t, setUp, "CI=true")
	require.False(t, ok)
	require.Contains(t, out, "apt-get install redis-server")

	m.has(t, "redis-server", "")
	out, ok = m.run(t, setUp, "CI=true")
	require.False(t, ok)
	require.Contains(t, out, "apt-get install gcc libc6-dev")

	require.NoError(t, os.Remove(filepath.Join(m.bin, "go")))
	out, ok = m.run(t, setUp, "CI=true")
	require.False(t, ok)
	require.Contains(t, out, "install Go 1.26 or newer")

	// An apt-get that cannot install is as good as none.
	broken := newMachine(t)
	broken.has(t, "apt-get", "exit 100")
	out, ok = broken.run(t, setUp, "CI=true")
	require.False(t, ok)
	require.Contains(t, out, "could not be installed")
}

func TestSetUpRunsWhatItCanElsewhere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out, ok := m.run(t, setUp)
	require.True(t, ok, out)
	require.Contains(t, out, "tests that need it are SKIPPED")
	require.Contains(t, out, "testing WITHOUT the race detector")
	require.Contains(t, out, "race: \n")
}

func TestSetUpAsksNobodyForAPassword(t *testing.T) {
	t.Parallel()
	user := newMachine(t)
	user.hasApt(t)
	user.has(t, "id", "echo 1000")
	user.has(t, "sudo", `echo "sudo $*" >>"$LOG"; shift; exec "$@"`)
	out, ok := user.run(t, "need_redis")
	require.True(t, ok, out)
	require.Contains(t, out, "SKIPPED")
	require.Empty(t, user.told(t), "a developer's sudo is left alone")

	user.has(t, "true", "")
	out, ok = user.run(t, "need_redis", "CI=true")
	require.True(t, ok, out)
	require.Contains(t, user.told(t), "sudo -n apt-get update")
	require.Contains(t, user.told(t), "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install")

	user = newMachine(t)
	user.hasApt(t)
	user.has(t, "id", "echo 1000")
	user.has(t, "sudo", "exit 1")
	out, ok = user.run(t, "need_redis", "CI=true")
	require.False(t, ok)
	require.Contains(t, out, "could not be installed")
}

func TestSetUpTakesAnotherServerByName(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	out, ok := m.run(t, "need_redis", "SMALLAGE_REDIS_SERVER=my-redis")
	require.False(t, ok)
	require.Contains(t, out, "SMALLAGE_REDIS_SERVER=my-redis: there is no such program")
	m.has(t, "my-redis", "")
	out, ok = m.run(t, "need_redis", "SMALLAGE_REDIS_SERVER=my-redis")
	require.True(t, ok, out)
}

// What a tool says on its way, such as that it downloads something, is no finding.
func TestLintTellsFindingsFromChatter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		golang string // what go does when it is asked for a check
		ok     bool
		want   string
	}{
		"clean":                  {"exit 0", true, "ok    vet"},
		"chatter":                {"echo go: downloading a module >&2", true, "ok    gofumpt"},
		"a file to be formatted": {"[ $1 = vet ] || echo a.go", false, "FAIL  gofumpt\na.go"},
		"a finding of vet":       {"echo a.go:1: wrong >&2; exit 1", false, "FAIL  vet\n\na.go:1: wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.has(t, "go", `case "$*" in version | *-version) exit 0 ;; esac; `+c.golang)
			out, ok := m.lint(t)
			require.Equal(t, c.ok, ok, out)
			require.Contains(t, out, c.want)
		})
	}

	m := newMachine(t)
	m.has(t, "go", `case "$*" in *-version) echo no network >&2; exit 1 ;; esac`)
	out, ok := m.lint(t)
	require.True(t, ok, out)
	require.Contains(t, out, "NOT CHECKED  staticcheck: honnef.example/staticcheck cannot be obtained: no network")
}

func (m machine) lint(t *testing.T) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.bin, "bash"), ".ci/lint")
	cmd.Dir = repository(t)
	cmd.Env = []string{
		"PATH=" + m.bin, "GO=go", "GOFUMPT=mvdan.example/gofumpt", "STATICCHECK=honnef.example/staticcheck", "TMPDIR=" + t.TempDir(),
	}
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}
