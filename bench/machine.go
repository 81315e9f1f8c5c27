package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// header says when, where and with what the run was made.
func (b *benchmark) header(ctx context.Context, out *strings.Builder) {
	version := "of unknown version"
	rdb := redis.NewClient(&redis.Options{Addr: b.redis[""]})
	if info := rdb.InfoMap(ctx, "server"); info.Err() == nil {
		version = info.Item("Server", "redis_version")
	}
	_ = rdb.Close()
	postgres := "PostgreSQL: " + b.missing
	if b.postgres != "" {
		postgres = b.version + ", its defaults (durable)"
	} else if b.missing == "" {
		postgres = "PostgreSQL: not used"
	}
	form := "long"
	if b.size.brief {
		form = "short"
	}
	fmt.Fprintf(out, "Measured %s, %s form, %s, %s in all.\n\n", b.began.UTC().Format("2006-01-02 15:04"), form, rounds(b.rounds), b.took())
	fmt.Fprintf(out, "- Machine: %d cores, %s, load when it ended: %s\n", runtime.NumCPU(), cpuModel(), load())
	fmt.Fprintf(out, "- %s, Redis %s on loopback; %s\n", runtime.Version(), version, postgres)
	fmt.Fprintf(out, "- %s\n", strings.Join(versions(), ", "))
	fmt.Fprintf(out, "- Persistence: none, but for the tables that name `appendfsync`: an append-only file on %s, never rewritten\n", fileSystem(os.TempDir()))
	fmt.Fprintf(out, "- Payload: one UUID (16 bytes; Smallage and river carry it as JSON with its parameter's name)\n")
	fmt.Fprintf(out, "- Jobs: %d were run or enqueued in all measurements together\n", b.jobs())
	fmt.Fprintf(out, "- Cells: median (lowest to highest); ratios are those of the medians. `ideal` and `XADD` are bare go-redis, no queue: no leases, retries or decoding.\n")
	for _, text := range b.failed {
		fmt.Fprintf(out, "\nFailed: %s\n", text)
	}
}

var named = map[string]string{
	"github.com/redis/go-redis/v9": "go-redis", "github.com/redis/rueidis": "rueidis", "github.com/hibiken/asynq": "asynq",
	"github.com/riverqueue/river": "river", "go.opentelemetry.io/otel/sdk": "OpenTelemetry SDK",
}

func versions() (list []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, dep := range info.Deps {
		if name := named[dep.Path]; name != "" {
			list = append(list, name+" "+dep.Version)
		}
	}
	return list
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

// fileSystem names what a folder lies on: flushing a file to memory proves nothing.
func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "an unknown file system"
	}
	switch uint32(s.Type) {
	case 0xEF53:
		return "ext4"
	case 0x01021994:
		return "tmpfs (memory: what a disk costs is not in it)"
	case 0x58465342:
		return "xfs"
	case 0x9123683E:
		return "btrfs"
	case 0x794C7630:
		return "overlayfs"
	}
	return fmt.Sprintf("a file system of type %#x", uint32(s.Type))
}
