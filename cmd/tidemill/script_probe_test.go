// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var listensRE = regexp.MustCompile(`"listen":"([^"]+)"`)

// probe asks a worker that logs where it listens. The answer can come to be what is
// expected a moment after what a script saw last, so it is asked until it is.
func probe(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 4, "probe NAME PATH CODE PATTERN")
	p := processOf(ts, args[0])
	log, _ := p.stderr.look()
	m := listensRE.FindStringSubmatch(log)
	if m == nil {
		ts.Fatalf("%s said nowhere that it listens; it wrote:\n%s", args[0], log)
	}
	pattern, err := regexp.Compile(args[3])
	ts.Check(err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	// Nothing tells when another process changes its mind.
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, body, err := fetch(client, "http://"+m[1]+args[1])
		if err == nil && strconv.Itoa(code) == args[2] && pattern.MatchString(body) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s %s: %d, %v, want %s and a match of %q:\n%s", args[0], args[1], code, err, args[2], args[3], body)
		}
	}
}

func fetch(client *http.Client, url string) (int, string, error) {
	res, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}
