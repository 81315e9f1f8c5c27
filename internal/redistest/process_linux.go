package redistest

import "syscall"

// dieWithParent has the kernel end the server with the test binary, also where no clean-up runs any more.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
