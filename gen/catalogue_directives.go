package gen

// What can be wrong with a directive: where it stands, how it is spelt, what its values are.
var (
	misspeltDirective = kind("misspelt-directive",
		"%s is not a directive%s; the directives are //smallage:task, on a function, and //smallage:package, on a package",
		"A comment begins like a directive of Smallage but is none. It is not ignored, because a task would then silently not exist.",
		"Correct the spelling, or begin the comment differently where it is prose.")
	notADirective = kind("not-a-directive",
		"%s is an ordinary comment, not a directive; write //smallage:%s at the beginning of a line comment, without a space after the slashes or the colon",
		"Go's directives have no space after the slashes, and are never block comments. gofmt also moves the space of `//smallage: task` to the front.",
		"Write `//smallage:task …` with no space before or after the colon, in a line comment of its own.")
	misplacedTask = kind("misplaced-task",
		"//smallage:task belongs in the doc comment of a function or method, but is %s; move it there",
		"A directive counts only in the comment that is directly above a function or method declaration, with no blank line between.",
		"Move the line into the function's doc comment. A function in a variable, or a method of an interface, cannot be a task: declare a function that calls it.")
	misplacedPackage = kind("misplaced-package",
		"//smallage:package belongs in the package's doc comment, but is %s; move it directly above a package clause",
		"`//smallage:package` counts only in the comment that is directly above a `package` clause.",
		"Move the line there, with no blank line between.")
	testFile = kind("task-in-test-file",
		"%s stands in a test file, where no worker could call the function; move the function to a file that is not a test",
		"Test files are not part of the package that others import.",
		"Move the function, with its directive, to an ordinary file.")
	leftOut = kind("left-out-file",
		"%s stands in a file that this build leaves out (%s); put the directive on a function in a file without a build constraint, or generate where the constraint holds (GOOS, GOARCH, CGO_ENABLED, -tags)",
		"The file's build constraint, its name's _GOOS or _GOARCH, or import \"C\" leaves it out of the build on this machine, so the function's types cannot be seen.",
		"Put the directive on a function without a build constraint that calls the constrained ones; or run smallagegen with the GOOS, GOARCH, CGO_ENABLED or -tags that the file asks for. A folder that is left out as a whole is passed over once its code was generated where it is built.")
	badWord = kind("bad-word",
		"%s",
		"After the directive's name come words of the form `key=value`. A value with spaces is a Go string literal.",
		"Write `key=value`, or `key=\"a value\"`.")
	unknownKey = kind("unknown-key",
		"%s is not a key of this directive%s; its keys are %s",
		"The key does not exist, is misspelt, or belongs to the other directive.",
		"Correct the key, or remove the word. docs/directive.md describes every key.")
	repeatedKey = kind("repeated-key",
		"the key %s is given twice, first at %s; keep one of them",
		"All `//smallage:task` lines of one function join into one directive, in which each key may be given once.",
		"Remove one of the two. Lists such as `inject` and `aliases` take several names, separated by commas.")
	badValue = kind("bad-value",
		"%s=%s %s",
		"The value does not have the form of its key, or is out of range.",
		"Write a value of the form that the message names.")
	unknownParameter = kind("unknown-parameter",
		"%s names %s, which is not a parameter of %s%s; its parameters are %s",
		"`inject`, `optional` and `dedup` speak of the function's own parameters, by name. The context is not one of them.",
		"Use the parameter's name as it is in the signature.")
	optionalInjected = kind("optional-injected",
		"optional names %s, which is injected and never travels with a job; remove it from optional or from inject",
		"`optional` is about arguments that a job may lack. An injected parameter comes from the worker.",
		"Name the parameter in one of the two keys.")
	badTemplate = kind("bad-template",
		"the dedup template %s",
		"A template is text with parameters in braces: `charge:{invoiceID}` or `{order.ID}`. A brace itself is written twice.",
		"Write the template as the message says.")
	templateInjected = kind("template-injected",
		"the dedup template uses %s, which is injected; the key is made where a job is enqueued, and there the parameter does not exist",
		"The key is computed by the caller's wrapper. Injected parameters exist only in the worker.",
		"Use parameters that travel with the job.")
	templateType = kind("template-type",
		"the dedup template uses %s of type %s, which has no canonical text; use a string, an integer, a bool, a time.Time or a type with MarshalText, or a field of such a type",
		"Two equal values must give one key, and two different ones two keys. Floats, pointers, slices, maps and structs without MarshalText do not promise that.",
		"Use a field (`{order.ID}`), or a parameter that identifies the work.")
	templateTime = kind("template-time",
		"the dedup template uses %s of type %s, whose text tells one instant in two zones apart; %s",
		"The text of a struct that embeds time.Time is the instant in its own zone, so that equal instants could give two keys. A time.Time itself is written in UTC.",
		"Name the embedded field: `{due.Time}`.")
	templateField = kind("template-field",
		"the dedup template uses %s, but %s; name a field of a struct parameter",
		"`{order.ID}` reads a field of a parameter. Fields are looked for in structs, not behind pointers, which may be nil.",
		"Name an existing field of the struct. Where the parameter is a pointer, pass the value that identifies the work as a parameter.")
	templateSeparator = kind("template-separator",
		"nothing separates %s from %s in the dedup template; put a character such as ':' between them",
		"Without a separator two different pairs of values give one key: a, bc and ab, c. A separator is ASCII punctuation or a space, not '%'; inside values it is escaped.",
		"Put a separator between the two: `{tenant}:{invoiceID}`.")
	templateLiteral = kind("template-literal",
		"the dedup template has no text of its own; begin it with the task's name: %s",
		"Dedup keys are shared by the whole namespace, so that a key of only values would exclude other tasks' jobs; and an empty value would give an empty key.",
		"Begin the template with the task's name.")
)
