// Package gen finds annotated functions in Go packages, checks them, and has the code for them written.
//
// It is a pipeline without side effects up to its last step: load.go asks the go command for packages, scan.go finds the
// directives, the files named after what they check turn each function into a task of package templates, and Generate
// returns what every file should hold, which files are no longer needed, and everything that is wrong. Only Write, in
// write.go, changes files.
package gen
