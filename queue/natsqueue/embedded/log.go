// SPDX-License-Identifier: Apache-2.0

package embedded

import "fmt"

// lines hands the server's log lines on.
type lines struct {
	log func(Level, string)
}

func (l lines) Noticef(format string, v ...any) { l.log(Info, fmt.Sprintf(format, v...)) }
func (l lines) Warnf(format string, v ...any)   { l.log(Warn, fmt.Sprintf(format, v...)) }
func (l lines) Errorf(format string, v ...any)  { l.log(Error, fmt.Sprintf(format, v...)) }
func (l lines) Debugf(format string, v ...any)  { l.log(Debug, fmt.Sprintf(format, v...)) }
func (l lines) Tracef(format string, v ...any)  { l.log(Debug, fmt.Sprintf(format, v...)) }

// Fatalf must not end the process, which is not the server's: the server goes on
// as if the line had been an error, and Start or the next call fails.
func (l lines) Fatalf(format string, v ...any) { l.log(Error, fmt.Sprintf(format, v...)) }
