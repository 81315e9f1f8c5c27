package main

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryFeatureHasItsPrice(t *testing.T) {
	t.Parallel()
	for _, s := range []size{short, long} {
		priced := map[string]bool{}
		for _, r := range plan(s) {
			if r.table != "price of each feature" {
				continue
			}
			require.Equal(t, []string{"smallage"}, r.who)
			f := reflect.ValueOf(r.order.Features)
			on := 0
			for i := range f.NumField() {
				if f.Field(i).Bool() {
					priced[f.Type().Field(i).Name] = true
					on++
				}
			}
			require.LessOrEqual(t, on, 1, r.name)
		}
		for i := range reflect.TypeFor[features]().NumField() {
			require.True(t, priced[reflect.TypeFor[features]().Field(i).Name], reflect.TypeFor[features]().Field(i).Name)
		}
	}
}

func TestRowsCanBeToldApart(t *testing.T) {
	t.Parallel()
	for _, s := range []size{short, long} {
		names, lines := map[string]bool{}, map[[2]string]bool{}
		abouts := map[string]string{}
		for _, r := range plan(s) {
			require.False(t, names[r.name], r.name)
			names[r.name] = true
			require.Subset(t, r.who, r.once, r.name)
			if about, seen := abouts[r.heading()]; seen {
				require.Equal(t, about, r.about, "rows of one table have one text")
			}
			abouts[r.heading()] = r.about
			if r.table != "" {
				require.Len(t, r.who, 1, "a line of a table has a label for one contender")
				at := [2]string{r.table, r.label}
				require.False(t, lines[at], r.name)
				lines[at] = true
			}
		}
	}
}

func TestGoalsNameRowsThatAreMeasured(t *testing.T) {
	t.Parallel()
	who := map[string][]string{}
	for _, r := range plan(long) {
		who[r.name] = r.who
	}
	for _, g := range goals {
		own := g.who
		if own == "" {
			own = "smallage"
		}
		require.Contains(t, who[g.row], own, g.what)
		if g.to != "" {
			other := g.other
			if other == "" {
				other = g.row
			}
			require.Contains(t, who[other], g.to, g.what)
		}
		if g.less != "" {
			require.Contains(t, who[g.less], own, g.what)
		}
	}
}
