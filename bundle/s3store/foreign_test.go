// SPDX-License-Identifier: Apache-2.0

package s3store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemill/tidemill/bundle"
)

// Objects that others put into the bucket, with names that no key has or spelled as none
// is, aren't seen; nor are those of a store beside this one.
func TestWhatOthersPutThere(t *testing.T) {
	l := newLab(t)
	client := l.client(t)
	put := func(name string) {
		t.Helper()
		if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &l.server.Bucket, Key: &name, Body: strings.NewReader("foreign")}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"/.hidden/x", "/a b", "/ä/x", "/short+/x", "/short+/sub/x", "/dir+more/x", "-beside/x", "/plain"} {
		put(l.prefix + name)
	}
	s := opened(t, l.direct())
	long := strings.Repeat("l", 250)
	if _, err := s.Create(t.Context(), "d/"+long+"/k", nil); err != nil {
		t.Fatal(err)
	}
	var keys, dirs []string
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"d/" + long + "/k", "plain"}) {
		t.Errorf("keys %.300q", keys)
	}
	for name, err := range bundle.Dirs(t.Context(), s, "") {
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, name)
	}
	if !slices.Equal(dirs, []string{"d"}) {
		t.Errorf("directories %q", dirs)
	}
	// An object without our metadata has a version too, and can be swapped.
	r, info, err := s.Get(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, err := s.Swap(t.Context(), "plain", info.Version, []byte("ours")); err != nil {
		t.Error(err)
	}
	if got := read(t, s, "plain"); got != "ours" {
		t.Errorf("plain holds %q", got)
	}
}
