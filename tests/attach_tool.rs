//! Promise: `ringmark trace start -p` traces a program that was started without Ringmark, call for
//! call, and the program goes on as if nothing had been, whatever becomes of the tool.

#[path = "attach/cycles.rs"]
mod cycles;
#[path = "attach/killed.rs"]
mod killed;
#[path = "attach/load.rs"]
mod load;
#[path = "attach/served.rs"]
mod served;
#[path = "attach/server.rs"]
mod server;
#[path = "attach/text.rs"]
mod text;
#[path = "attach/told.rs"]
mod told;
