// Package checksums holds the worker example's task.
package checksums

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	smallage "github.com/smallage/smallage/runtime"
)

//go:generate go run github.com/smallage/smallage/cmd/smallagegen

// File reads a file of the worker's machine and returns its SHA-256 checksum in hexadecimal digits. It ends early where
// ctx ends: at the task's timeout, and when the worker has to stop.
//
//smallage:task queue=files attempts=3 backoff=200ms,5s timeout=10m
func File(ctx context.Context, path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, smallage.Bury(err) // trying again would not bring it
	}
	if err != nil {
		return nil, err
	}
	// Closing the file ends a read that waits, as a pipe's does.
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	defer func() {
		if stop() {
			_ = f.Close()
		}
	}()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return hex.AppendEncode(nil, sum.Sum(nil)), nil
}
