-- Shared by the scripts that move whole jobs. A job at rest (delayed, dead) is its stream fields in order, each written
-- as <bytes>:<field>, so that any byte survives.
local function pack(fields)
  local out = {}
  for i = 1, #fields do out[i] = #fields[i] .. ':' .. fields[i] end
  return table.concat(out)
end

local function unpack_job(packed)
  local fields, at = {}, 1
  while at <= #packed do
    local colon = string.find(packed, ':', at, true)
    local size = tonumber(string.sub(packed, at, colon - 1))
    fields[#fields + 1] = string.sub(packed, colon + 1, colon + size)
    at = colon + size + 1
  end
  return fields
end

-- Sets one field in place, or appends it.
local function set_field(fields, name, value)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      fields[i + 1] = value
      return
    end
  end
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end

local function drop_field(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then
      table.remove(fields, i)
      table.remove(fields, i)
      return
    end
  end
end

local function field(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
end

-- The id of a job: the second part of its field job, where it has no field of its own.
local function job_id(fields)
  return field(fields, 'id') or string.match(field(fields, 'job') or '', '^[^ ]* ([^ ]*)')
end
