// At an old address: goes on to the page's new one, with the choice of rows and the anchor that were asked for.
location.replace(document.querySelector('main a').href + location.search + location.hash);
