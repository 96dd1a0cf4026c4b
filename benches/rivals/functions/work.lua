-- Work for the Lua interpreter without errors: they leave C functions with longjmp, which ends a
-- program that uftrace 0.13 records.
local rounds = tonumber(arg[1]) or 1

local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end

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

local total = 0
for round = 1, rounds do
  local chunk = assert(load("local t = {} for i = 1, 30 do t[i] = i ^ 2 // 1 end return t[30]"))
  total = total + fib(10) + #strings(round) + tables(round) + chunk()
end
print(total)
