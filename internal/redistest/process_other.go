//go:build !linux

package redistest

import "syscall"

// dieWithParent is only known on Linux; elsewhere a server outlives a test binary that panics.
func dieWithParent() *syscall.SysProcAttr { return nil }
