package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// largestFile is the largest file that is indexed; what is larger is seldom text that somebody wrote.
const largestFile = 1 << 20

// textFiles lists the text files below root, by path: all of them, or only the Markdown and Go files. Hidden files and
// folders are left out, and so is what cannot be read or is not text, which is counted.
func textFiles(root fs.FS, ownOnly bool) (paths []string, leftOut int, err error) {
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil && name == ".":
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden:
			return nil
		case err != nil: // a folder that may not be read
			leftOut++
			return nil
		case !d.Type().IsRegular():
			return nil
		case ownOnly && path.Ext(name) != ".md" && path.Ext(name) != ".go":
			return nil
		case !isText(root, name, d):
			leftOut++
			return nil
		}
		paths = append(paths, name)
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list the files: %w", err)
	}
	return paths, leftOut, nil
}

// isText looks at the beginning of the file, as tools that search files do.
func isText(root fs.FS, name string, d fs.DirEntry) bool {
	if info, err := d.Info(); err != nil || info.Size() > largestFile {
		return false
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false
	}
	head = head[:n]
	if n == cap(head) { // the last character may be cut
		for cut := 1; cut < utf8.UTFMax && !utf8.Valid(head); cut++ {
			head = head[:n-cut]
		}
	}
	return bytes.IndexByte(head, 0) < 0 && utf8.Valid(head)
}
