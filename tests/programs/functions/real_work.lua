-- Work for the Lua interpreter: parser, strings, tables, closures, coroutines, collections, and
-- errors, which leave C functions with longjmp. The same output and the same calls each time.
-- `real_work.lua ROUNDS plain`: without errors and coroutines, because a longjmp ends a program that
-- uftrace 0.13 records.
local rounds = tonumber(arg[1]) or 1

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

local function throw(depth)
  if depth == 0 then error("thrown", 0) end
  local _, text = string.gsub("x", "x", function() throw(depth - 1) end)
  return text
end

local function strings(round)
  local words = {}
  for word in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do
    words[#words + 1] = string.format("%s-%d-%5.2f", word:upper(), round, round / 7)
  end
  table.sort(words, function(a, b) return a:reverse() < b:reverse() end)
  return table.concat(words, ","):rep(2):gsub("O", "0")
end

local function tables(round)
  local sum = setmetatable({ n = 0 }, { __index = function(_, key) return #key end })
  for n = 1, 100 do
    sum[n] = { n * round, tostring(n) }
    sum.n = sum.n + #sum[n][2] + sum.missing
  end
  return sum.n
end

local function plain()
  local total = 0
  for round = 1, rounds do
    local chunk = assert(load("local t = {} for i = 1, 30 do t[i] = i ^ 2 // 1 end return t[30]"))
    total = total + fib(10) + #strings(round) + tables(round) + chunk()
  end
  print(total)
end

if arg[2] == "plain" then
  plain()
  return
end

local function objects(round)
  local class = setmetatable({}, { __call = function(self, n) return setmetatable({ n = n }, self) end })
  class.__index = class
  class.__add = function(a, b) return class(a.n + b.n) end
  class.__lt = function(a, b) return a.n < b.n end
  class.__close = function(self) self.n = 0 end
  class.__gc = function(self) self.n = -1 end
  local sum = class(0)
  for n = 1, 50 do
    local one <close> = class(n * round)
    if sum < one then sum = sum + one end
    sum = sum + class(1)
  end
  return sum.n
end

local function generate(limit)
  return coroutine.wrap(function()
    for n = 1, limit do
      local fine, text = pcall(function() coroutine.yield(n); if n % 3 == 0 then throw(2) end end)
      if not fine then coroutine.yield(text) end
    end
  end)
end

for round = 1, rounds do
  local caught = {}
  for depth = 0, 20 do
    local fine, text = pcall(throw, depth)
    caught[#caught + 1] = tostring(fine) .. text
  end
  local _, trace = xpcall(throw, function(text) return text .. select("#", text, 1) end, 5)
  local yields = {}
  for value in generate(20) do yields[#yields + 1] = tostring(value) end
  local chunk = assert(load("local t = {} for i = 1, 30 do t[i] = i ^ 2 // 1 end return #t, t[30]"))
  local broken, message = load("local = 1")
  local deep, overflow = pcall(throw, 250)
  print(round, fib(12), #strings(round), objects(round), #caught, trace, chunk())
  print(table.concat(yields, " "), broken, message, deep, overflow)
  if round % 10 == 0 then collectgarbage() end
end
print(collectgarbage("count") > 0)
