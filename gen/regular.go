package gen

import (
	"errors"
	"io/fs"
	"os"
)

// errIrregular is for folders, pipes and devices in the place of a file: to read some of them would never end.
var errIrregular = errors.New("it is no regular file")

// readRegular reads a file, or what a link leads to.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	return os.ReadFile(path)
}

// leadsNowhere holds for a link to a file that does not exist.
func leadsNowhere(path string) bool {
	_, missing := os.Stat(path)
	_, err := os.Lstat(path)
	return errors.Is(missing, fs.ErrNotExist) && err == nil
}
