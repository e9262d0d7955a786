"""Viewsets under addresses of their own, to see whether hooks are asked."""

from django.urls import include, path

import config.urls
from config.api.routers import Router

router = Router()
urlpatterns = [path("api/v<version:version>/", include(router.urls)), *config.urls.urlpatterns]
handler400, handler403 = config.urls.handler400, config.urls.handler403
handler404, handler500 = config.urls.handler404, config.urls.handler500


def probe(view_class):
    """Puts a viewset under its name in small letters."""
    name = view_class.__name__.lower()
    router.register(name, view_class, basename=name)
    return view_class


def show():
    """Makes the addresses of all viewsets that were probed until now known."""
    urlpatterns[0] = path("api/v<version:version>/", include(router.urls))


def items_of(response):
    assert response.status_code == 200, response.content
    return [row["item"] for row in response.data]
