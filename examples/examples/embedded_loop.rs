//! The core in a blocking loop written by hand, with no adapter: client and server, a thread each, over a pair of Unix sockets.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use mcp_wire::{Instant, Json, RecvBuffer, client, server};

fn main() -> Result<(), Box<dyn Error>> {
    let (near, far) = UnixStream::pair()?;
    let start = std::time::Instant::now();
    let now = move || Instant::from_epoch(start.elapsed());
    let server = std::thread::spawn(move || serve(far, now).map_err(|error| error.to_string()));
    println!("{}", ask(near, now)?);
    Ok(server.join().map_err(|_| "the server panicked")??)
}

/// Reads what comes before `wake`; `false` at the end of the stream.
fn read(stream: &mut UnixStream, recv: &mut RecvBuffer, wake: Option<Instant>, now: Instant) -> io::Result<bool> {
    stream.set_read_timeout(wake.map(|wake| wake.saturating_since(now).max(Duration::from_millis(1))))?;
    match stream.read(recv.spare_mut(4096)) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true), // it is time for `handle_timeout`
        read => read.inspect(|n| recv.commit(*n)).map(|n| n > 0),
    }
}

fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<usize> {
    stream.write_all(bytes).map(|()| bytes.len())
}

fn ask(mut stream: UnixStream, now: impl Fn() -> Instant) -> Result<String, Box<dyn Error>> {
    let mut recv = RecvBuffer::default();
    let mut client = client::Connection::new(client::Config::new("embedded", "1.0"))?;
    client.opened(now());
    let request = client.request("my/method", Some(Json::EMPTY), Default::default(), now())?;
    loop {
        let written = write(&mut stream, client.output(now()))?;
        client.accepted(written, now());
        let open = read(&mut stream, &mut recv, client.poll_timeout(), now())?;
        while let Some(frame) = recv.next_frame() {
            match client.handle(frame.message(), now()) {
                client::Event::Result { request: of, result, .. } if of == request => return Ok(result.get().into()),
                client::Event::Error { error, .. } => return Err(error.message.into_owned().into()),
                _ => {}
            }
        }
        client.handle_timeout(now());
        if !open {
            client.lost(false, now());
        }
        while let Some(signal) = client.poll_signal() {
            if let client::Signal::Ended { cause, .. } = signal {
                return Err(cause.as_str().into());
            }
        }
    }
}

fn serve(mut stream: UnixStream, now: impl Fn() -> Instant) -> Result<(), Box<dyn Error>> {
    let mut recv = RecvBuffer::default();
    let mut server = server::Connection::new(server::Config::new("embedded", "1.0"))?;
    while server.ended().is_none() {
        let open = read(&mut stream, &mut recv, server.poll_timeout(), now())?;
        while let Some(frame) = recv.next_frame() {
            if let server::Event::Request { ticket, request, .. } = server.handle(frame.message(), now()) {
                let result = format!(r#"{{"method":"{}"}}"#, request.method.escape_default());
                server.respond(ticket, Json::parse(&result)?, now())?;
            }
        }
        server.handle_timeout(now());
        if !open {
            server.end_of_input(now());
        }
        let written = write(&mut stream, server.output(now()))?;
        server.accepted(written, now());
    }
    Ok(())
}
