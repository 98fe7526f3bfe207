// A worker in a frame: pages that are opened from a disk may not start a real one, and the site's
// search is a worker.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    const frame = document.createElement("iframe")
    frame.hidden = true
    document.documentElement.append(frame)
    const inside = frame.contentWindow
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
    inside.importScripts = (...urls) =>
      urls.reduce((before, each) => before.then(() => load(inside.document, each)), Promise.resolve())
    this.inside = inside
    this.loaded = load(inside.document, url)
  }

  postMessage(data) {
    this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
  }

  terminate() {
    this.inside.frameElement.remove()
  }
}

function load(where, url) {
  return new Promise((done, failed) => {
    const script = where.createElement("script")
    Object.assign(script, { src: url, onload: done, onerror: failed })
    where.body.append(script)
  })
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
}
