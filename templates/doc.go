// Package templates turns the checked model of a package's tasks into Go code. It knows nothing of directives, comments
// in sources or diagnostics: what it is given is correct, and what it returns compiles.
//
// There is one file here per piece of generated code. Names that a piece uses in a function's body are kept apart from
// the names that the user chose (parameters, packages, dependencies) in names.go and imports.go.
package templates
