/* What ringmark.h must know of the format and of the writer. Written from their definitions by
   `cargo run -p ringmark-c --example layout`; not to be changed by hand. */
#ifndef RINGMARK_LAYOUT_H
#define RINGMARK_LAYOUT_H

/* Must be the library's: else its types stay off. */
#define RINGMARK_LAYOUT 0xe9719cd730eb66b3ULL

#define RINGMARK_WRITER_BEGUN 0U /* u64: reservations begun */
#define RINGMARK_WRITER_ENDED 8U /* u64: reservations ended, in any order */
#define RINGMARK_WRITER_RESERVATIONS 16U /* u64: records reserved so far */
#define RINGMARK_WRITER_CURSOR 24U /* pointer: where the search for an empty word begins */
#define RINGMARK_WRITER_END 32U /* pointer: end of the open page; null: nothing fits */
#define RINGMARK_WRITER_TICK_BASE 40U /* u64: what the open page's ticks count from */
#define RINGMARK_WRITER_CLOCK 48U /* u64: number of the clock */
#define RINGMARK_WRITER_TOP 56U /* pointer: the frame of the next open span; null or aligned to STACK_BYTES: none */
#define RINGMARK_TYPE_ENABLED 0U /* u32 in a type: its id if it is on, else 0 */
#define RINGMARK_TYPE_STATE_BYTES 8U /* what a type begins with */
#define RINGMARK_TYPE_SHIFT 32U /* header word: ticks, the type's id from this bit on */
#define RINGMARK_LENGTH_SHIFT 56U /* header word: payload words from this bit on */
#define RINGMARK_LONG 255U /* payload length that says: the next word holds it */
#define RINGMARK_BUSY 0x200000000ULL /* header word of a reserved record, without its length */
#define RINGMARK_CANCELLED 0x300000000ULL /* header word of a cancelled record, without its length */
#define RINGMARK_PAYLOAD_WORDS_MAX 131072U /* no page holds more */
#define RINGMARK_CLOCK_TSC 1U /* the clock that the inline path reads */
#define RINGMARK_STACK_BYTES 4096U /* size and alignment of a stack of open spans */
#define RINGMARK_FRAME_WORDS 8U /* words of a frame */
#define RINGMARK_FRAME_KEEPS 6U /* payload words that a frame holds after the tick */
#define RINGMARK_FRAME_HEAD 0x8000000000000000ULL /* head of a frame, without type, words and serial number */
#define RINGMARK_FRAME_LEXICAL 0x4000000000000000ULL /* bit of a head: the span ends with its block */
#define RINGMARK_FRAME_CLAIMED 0x2000000000000000ULL /* head of a frame that is being filled, without serial number */
#define RINGMARK_SEMANTIC_DURATION 1U /* first field of a span */
#define RINGMARK_SEMANTIC_COUNTER 7U /* the field of a counter */
#define RINGMARK_RESERVATION_BYTES 40U /* struct ringmark_reservation */
#define RINGMARK_SPAN_BYTES 32U /* struct ringmark_span */
#define RINGMARK_TYPE_BYTES 64U /* struct ringmark_type */
#define RINGMARK_FIELD_BYTES 24U /* struct ringmark_field */

#define RINGMARK_KIND_U8 1U
#define RINGMARK_KIND_U16 2U
#define RINGMARK_KIND_U32 3U
#define RINGMARK_KIND_U64 4U
#define RINGMARK_KIND_U128 5U
#define RINGMARK_KIND_I8 6U
#define RINGMARK_KIND_I16 7U
#define RINGMARK_KIND_I32 8U
#define RINGMARK_KIND_I64 9U
#define RINGMARK_KIND_I128 10U
#define RINGMARK_KIND_F32 11U
#define RINGMARK_KIND_F64 12U
#define RINGMARK_KIND_BOOL 13U
#define RINGMARK_KIND_CHAR 14U
#define RINGMARK_KIND_STR 15U
#define RINGMARK_KIND_BYTES 16U

#define RINGMARK_LEVEL_ERROR 1U
#define RINGMARK_LEVEL_WARN 2U
#define RINGMARK_LEVEL_INFO 3U
#define RINGMARK_LEVEL_DEBUG 4U
#define RINGMARK_LEVEL_TRACE 5U

#define RINGMARK_SHAPE_EVENT 1U
#define RINGMARK_SHAPE_SPAN 2U
#define RINGMARK_SHAPE_SPAN_NEW 3U
#define RINGMARK_SHAPE_SPAN_ENTER 4U
#define RINGMARK_SHAPE_SPAN_EXIT 5U
#define RINGMARK_SHAPE_SPAN_CLOSE 6U
#define RINGMARK_SHAPE_SPAN_RECORD 7U
#define RINGMARK_SHAPE_SPAN_FOLLOWS 8U
#define RINGMARK_SHAPE_COUNTER 9U
#define RINGMARK_SHAPE_FLOW 10U

#endif
