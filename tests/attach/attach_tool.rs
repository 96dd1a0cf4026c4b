//! Promise: `ringmark trace start -p` traces a program that was started without Ringmark, call for
//! call, and the program goes on as if nothing had been, whatever becomes of the tool.

#[path = "attach_tool/contained.rs"]
mod contained;
#[path = "attach_tool/cycles.rs"]
mod cycles;
#[path = "attach_tool/filters.rs"]
mod filters;
#[path = "attach_tool/killed.rs"]
mod killed;
#[path = "attach_tool/load.rs"]
mod load;
#[path = "attach_tool/served.rs"]
mod served;
#[path = "attach_tool/server.rs"]
mod server;
#[path = "attach_tool/text.rs"]
mod text;
#[path = "attach_tool/told.rs"]
mod told;
