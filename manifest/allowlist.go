// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var hostname = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// checkAllowlist checks the hosts of limited_internet and returns them in small
// letters.
func checkAllowlist(d *decoder, policy string, hosts []string) []string {
	const entry = "limited_internet_allowlist"
	switch {
	case policy == "limited_internet" && len(hosts) == 0:
		d.problem(entry, "limited_internet requires a non-empty limited_internet_allowlist", "list the hosts, such as [api.example.com]")
	case policy != "limited_internet" && len(hosts) > 0:
		d.problem(entry, "only valid under network_policy 'limited_internet'", "leave it out, or change network_policy")
	}
	var lower []string
	for i, host := range hosts {
		at := index(entry, i)
		h := strings.ToLower(host)
		if text, fix := badHost(h); text != "" {
			d.problem(at, quote(host)+" "+text, fix)
		} else if slices.Contains(lower, h) {
			d.problem(at, "contains duplicate entries: "+quote(h), "write each host once")
		}
		lower = append(lower, h)
	}
	return lower
}

// badHost says why a host can't be in the list, or "".
func badHost(h string) (text, fix string) {
	name := strings.TrimPrefix(h, "*.")
	_, ipErr := netip.ParseAddr(h)
	switch {
	case h == "":
		return "is empty: entries must be non-empty hostnames", ""
	case strings.Contains(h, "://"):
		return "has a scheme", "write the host alone"
	case strings.Contains(h, "/"):
		return "has a path", "write the host alone"
	case strings.Contains(h, ":"):
		return "has a port", "write the host alone; ports 80 and 443 are open"
	case strings.Contains(name, "*"):
		return "may have at most one leading '*.' wildcard", "write for example *.example.com"
	case ipErr == nil:
		return "is an IP literal", "write a host name"
	case len(name) > 253 || !hostname.MatchString(name):
		return "is not a valid DNS hostname", ""
	}
	return "", ""
}
