//! An HTTP/2 server on several threads and its clients in one process, recorded by Ringmark's
//! subscriber: `http-server REQUESTS CONNECTIONS`. Every request is answered only when all of them
//! are under way, so they are all concurrent. Prints what a counter between `tracing` and the
//! subscriber saw, as one line of JSON.
#![forbid(unsafe_code)]

mod client;
mod counting;
mod request;
mod server;

use std::sync::Arc;

use serde_json::json;

use request::Failed;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse());
    let (Some(Ok(requests)), Some(Ok(connections)), None) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: http-server REQUESTS CONNECTIONS".into());
    };
    let session = ringmark::start_from_env();
    let counts = Arc::new(counting::Counts::default());
    let subscriber = counting::Counting::new(ringmark::tracing::recorder(), counts.clone());
    tracing::subscriber::set_global_default(subscriber)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()?;
    let answered = runtime.block_on(async {
        let server = server::start(requests, requests.div_ceil(connections)).await?;
        client::all(server, requests, connections).await
    })?;
    // All tasks are dropped here, and with them their spans.
    drop(runtime);
    println!(
        "{}",
        json!({
            "session": session.map(|s| s.uuid().to_string()),
            "answered": answered,
            "seen": counts.to_json(),
        })
    );
    Ok(())
}
