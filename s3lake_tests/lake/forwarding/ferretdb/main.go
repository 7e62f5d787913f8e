// FerretDB, which speaks MongoDB's protocol, over SQLite. Its own command cannot be built as a Go module: that wants a
// file which only its repository's tools make.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	config := &ferretdb.Config{Handler: "sqlite", SQLiteURL: os.Args[2]}
	config.Listener.TCP = os.Args[1]
	server, err := ferretdb.New(config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
