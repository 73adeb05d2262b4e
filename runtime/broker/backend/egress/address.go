package egress

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/codeact-dev/codeact-operator/api/contract"
)

// AddressError says that a request would have gone to an address that the
// operator does not allow. Nothing of it was sent.
type AddressError struct {
	// Kind names the sort of address, such as "loopback".
	Kind string
	// Proxy says that it is the address of a proxy, not of the tool.
	Proxy bool
}

// Error implements error. It never holds the address: the program may see it.
func (e *AddressError) Error() string {
	whose := "its address"
	if e.Proxy {
		whose = "the address of its proxy"
	}
	return whose + " is a " + e.Kind + " one, which the operator does not allow"
}

// The sorts of address that are not allowed, or not without the operator's word.
const (
	kindLoopback    = "loopback"
	kindLinkLocal   = "link-local"
	kindMetadata    = "cloud metadata"
	kindUnspecified = "unspecified"
	kindMulticast   = "multicast"
	kindBroadcast   = "broadcast"
	kindObscure     = "disguised"
)

// metadata are the addresses of cloud metadata services that are not link-local,
// though they are as near. AllowLinkLocal allows them, too.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS, credentials of pods
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
}

// checkAddr refuses an address by the operator's policy, in whatever way an IPv4
// address is wrapped into an IPv6 one.
func checkAddr(a netip.Addr, p contract.OperatorPolicy) error {
	a = a.Unmap().WithZone("")
	k := kind(a)
	for _, in := range wrapped(a) {
		if k != "" {
			break
		}
		k = kind(in)
	}
	if k == "" {
		k = scattered(a)
	}
	switch {
	case k == "",
		k == kindLoopback && p.AllowLoopback,
		(k == kindLinkLocal || k == kindMetadata) && p.AllowLinkLocal:
		return nil
	}
	return &AddressError{Kind: k}
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// kind names why an address may not be dialled; it is empty for an ordinary one.
func kind(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return kindLoopback
	case a.IsUnspecified(), thisNetwork.Contains(a):
		return kindUnspecified // Linux takes 0.0.0.0 and :: for the loopback address
	case a.IsLinkLocalUnicast():
		return kindLinkLocal
	case a.IsMulticast():
		return kindMulticast
	case a == broadcast:
		return kindBroadcast
	}
	if slices.Contains(metadata, a) {
		return kindMetadata
	}
	return ""
}

// The prefixes of IPv6 addresses that stand for an IPv4 one.
var (
	compatible  = netip.MustParsePrefix("::/96")           // RFC 4291, 2.5.5.1
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	nat64       = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour   = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo      = netip.MustParsePrefix("2001::/32")       // RFC 4380
	isatapLocal = [4]byte{0x00, 0x00, 0x5e, 0xfe}          // RFC 5214
	isatap      = [4]byte{0x02, 0x00, 0x5e, 0xfe}
)

// wrapped returns the IPv4 addresses that an IPv6 one stands for.
func wrapped(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case compatible.Contains(a), translated.Contains(a), nat64.Contains(a),
		[4]byte(b[8:12]) == isatapLocal, [4]byte(b[8:12]) == isatap:
		return []netip.Addr{last}
	case sixToFour.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	}
	return nil
}

// scattered looks for an IPv4 address at each place where a translator with a
// prefix of its own length (RFC 6052, 2.2) may read it. The address of another
// length reads as 0.x.x.x there, so an unspecified one means nothing.
func scattered(a netip.Addr) string {
	if !nat64Local.Contains(a) {
		return ""
	}
	b := a.As16()
	for _, v4 := range [][4]byte{{b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}, [4]byte(b[12:])} {
		if k := kind(netip.AddrFrom4(v4)); k != "" && k != kindUnspecified {
			return k
		}
	}
	return ""
}

// control is asked about every address before it is dialled. It comes behind
// name resolution, so that no name can show one address here and have another
// one dialled.
func control(p contract.OperatorPolicy) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return &AddressError{Kind: kindObscure}
		}
		return checkAddr(a.Addr(), p)
	}
}

// localNames are names that resolve to what checkAddr refuses wherever somebody
// else, a proxy, resolves them.
var localNames = map[string]string{
	"localhost": kindLoopback, "localhost.localdomain": kindLoopback, "localhost6": kindLoopback,
	"localhost6.localdomain6": kindLoopback, "ip6-localhost": kindLoopback, "ip6-loopback": kindLoopback,
	"metadata": kindMetadata, "metadata.google.internal": kindMetadata, "metadata.goog": kindMetadata,
	"instance-data": kindMetadata, "instance-data.ec2.internal": kindMetadata, "metadata.azure.internal": kindMetadata,
	"metadata.tencentyun.com": kindMetadata,
}

// checkHost refuses a host by its spelling, for requests that a proxy brings to
// a place that this process never sees. Literal addresses are checked as they
// would be when dialled; other spellings of one (127.1, 0x7f000001, 2130706433),
// which many proxies would take, are refused. So is what is not ASCII: net/http
// makes another spelling of it on the way, in which a wide 1 is a 1.
func checkHost(host string, p contract.OperatorPolicy) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return checkAddr(a, p)
	}
	name := strings.ToLower(strings.TrimRight(host, "."))
	if a, err := netip.ParseAddr(name); err == nil {
		return checkAddr(a, p)
	}
	k := localNames[name]
	if strings.HasSuffix(name, ".localhost") {
		k = kindLoopback
	}
	switch {
	case name == "", isNumber(name[strings.LastIndexByte(name, '.')+1:]), strings.ContainsAny(name, "%:[]"),
		strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }):
		return &AddressError{Kind: kindObscure}
	case k == kindLoopback && !p.AllowLoopback, k == kindMetadata && !p.AllowLinkLocal:
		return &AddressError{Kind: k}
	}
	return nil
}

// isNumber reports whether the last label of a host makes it an IPv4 address for
// those who read them generously.
func isNumber(label string) bool {
	_, err := strconv.ParseUint(label, 0, 64)
	_, dec := strconv.ParseUint(label, 10, 64) // 08 is no number to the other one
	return err == nil || dec == nil
}
