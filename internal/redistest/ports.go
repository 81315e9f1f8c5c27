package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that systems give to outgoing connections (from 32768 on Linux, higher
// elsewhere): a port stays free while its server is down, and no connection to it can meet itself. A cluster's bus
// listens 10000 above, still below that range.
const (
	firstPort = 12000
	ports     = 10000
	busOffset = 10000
)

// freePort returns a loopback port on which nothing listens at the moment. Another process may take it first: whoever
// listens on it must be ready to ask again.
func freePort() (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(ports)
		if listenable(port) && listenable(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free loopback port in %d–%d after 1000 tries", firstPort, firstPort+ports-1)
}

func listenable(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
